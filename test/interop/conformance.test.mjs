// The official conformance suite, its server side: whatever a replica scores directly, three of it
// behind the gateway must score too, scenario by scenario and check by check. Totals prove nothing (a
// dead port scores as well), so every check's own verdict is compared.
import assert from 'node:assert/strict';
import path from 'node:path';
import { suite, test } from 'node:test';
import { scoreOf, total } from '../system/lib/conformance.mjs';
import { gateway } from '../system/lib/gateway.mjs';
import { freePort } from '../system/lib/ports.mjs';
import { LIMPET, MODULES, start } from '../system/lib/proc.mjs';
import { startRedis } from '../system/lib/redis.mjs';
import { conf, everything, urls } from '../system/lib/replicas.mjs';
import { confs, ready } from '../system/lib/shared.mjs';
import { randomChoice } from '../system/lib/sidecars.mjs';

const CLI = path.join(MODULES, '@modelcontextprotocol/conformance/dist/index.js');
// The library's server with the offer of conf_offer.h; built beside the tests.
const BUILT = path.join(process.env.LIMPET_BUILD ?? path.dirname(LIMPET), 'test/interop');
const CONF_SERVER = path.join(BUILT, 'conf-server');
const SCENARIOS = 32;
const CHECKS = 44;

// What server-everything passes; it lacks the suite's own tools, so the others fail by design.
const EVERYTHING_PASSES = ['server-initialize', 'logging-set-level', 'ping', 'tools-list',
  'tools-call-simple-text', 'tools-call-error', 'server-sse-multiple-streams', 'resources-list',
  'resources-subscribe', 'resources-unsubscribe', 'prompts-list'];

const score = (t, port) => scoreOf(t, CLI, port, ['--suite', 'all']);

suite('conformance', { concurrency: false }, () => {
  test('a dead port passes no scenario that a server can pass', async t => {
    const { summary } = await score(t, await freePort());
    const [passed] = total(summary);
    assert.ok(passed < CHECKS / 4, `a dead port passes ${passed} checks`);
  });

  test('our replica passes everything; three of it behind the gateway do the same', async t => {
    const replicas = await conf(t, 3);
    const direct = await score(t, replicas[0].port);
    assert.equal(Object.keys(direct.summary).length, SCENARIOS, direct.text);
    assert.deepEqual(total(direct.summary), [CHECKS, 0]);
    const limpet = await gateway(t, { replicas: urls(replicas) });
    const through = await score(t, limpet.port);
    assert.deepEqual(through.summary, direct.summary);
    assert.deepEqual(through.checks, direct.checks);
  });

  test('the library\'s server passes everything, also three behind the gateway', async t => {
    const replicas = await Promise.all(['c1', 'c2', 'c3'].map(async name => {
      const proc = start(t, name, CONF_SERVER, ['0', name]);
      const [, url] = await proc.says(/listening on (http:\S+)\n/);
      return { url, port: new URL(url).port };
    }));
    const direct = await score(t, replicas[0].port);
    assert.equal(Object.keys(direct.summary).length, SCENARIOS, direct.text);
    const [passed, failed] = total(direct.summary);
    assert.ok(passed >= CHECKS && failed === 0, direct.text);
    const limpet = await gateway(t, { replicas: urls(replicas) });
    const through = await score(t, limpet.port);
    assert.deepEqual(through.summary, direct.summary);
    assert.deepEqual(through.checks, direct.checks);
  });

  for (const [where, program] of [['on its own loop', 'conf-library'],
    ['below a path of a host program', 'conf-host']]) {
    test(`liblimpet-server passes everything ${where}`, async t => {
      const proc = start(t, program, path.join(BUILT, program), ['127.0.0.1:0', 'c1']);
      const [, url] = await proc.says(/listening on (http:\S+)\n/);
      const { summary, text } = await score(t, new URL(url).port);
      assert.equal(Object.keys(summary).length, SCENARIOS, text);
      const [passed, failed] = total(summary);
      assert.ok(passed >= CHECKS && failed === 0, text);
    });
  }

  test('three replicas that share their sessions, any of them for any request, do the same',
    async t => {
      const replicas = await confs(t, 3, await startRedis(t));
      await ready(replicas);
      const front = await randomChoice(t, replicas);
      const { summary, text } = await score(t, front.port);
      assert.equal(Object.keys(summary).length, SCENARIOS, text);
      const [passed, failed] = total(summary);
      assert.ok(passed >= CHECKS && failed === 0, text);
    });

  test("the reference server's passes and fails come out the same", async t => {
    const replicas = await everything(t, 3);
    const direct = await score(t, replicas[0].port);
    const passing = Object.entries(direct.summary)
      .filter(([, [passed, failed]]) => passed > 0 && failed === 0).map(([name]) => name);
    for (const name of EVERYTHING_PASSES) assert.ok(passing.includes(name), `${name} passes`);
    // This server takes any Host and Origin, so the gateway must let the suite's foreign ones through
    // for its fail to be seen; that our default refuses them is shown above.
    const limpet = await gateway(t, { replicas: urls(replicas),
      flags: ['--host', '*', '--origin', '*'] });
    const through = await score(t, limpet.port);
    assert.deepEqual(through.summary, direct.summary);
    assert.deepEqual(through.checks, direct.checks);
  });
});
