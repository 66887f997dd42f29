// The conformance suite of 2026-07-28 (a preview of it), each revision with the requirements that were
// frozen for it, against the library's server: directly, and three of it behind the gateway.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { suite, test } from 'node:test';
import { scoreOf } from '../system/lib/conformance.mjs';
import { gateway } from '../system/lib/gateway.mjs';
import { LIMPET, MODULES, start } from '../system/lib/proc.mjs';
import { urls } from '../system/lib/replicas.mjs';

const CLI = path.join(MODULES, 'conformance-alpha/dist/index.js');
const BUILT = path.join(process.env.LIMPET_BUILD ?? path.dirname(LIMPET), 'test/interop');
const CONF_SERVER = path.join(BUILT, 'conf-server');

// How many scenarios a revision has.
const REVISIONS = {
  '2025-11-25': { scenarios: 33 },
  '2026-07-28': { scenarios: 50 },
};

// What one replica tells those who listen at another one is not told: a SHOULD, and a warning.
const NOT_ACROSS = /list-changed-on-subscription/;

const failing = summary => Object.entries(summary)
  .filter(([, [, failed]]) => failed > 0).map(([name]) => name).sort();
const comparable = checks => Object.fromEntries(Object.entries(checks)
  .map(([scenario, list]) => [scenario, list.filter(check => !NOT_ACROSS.test(check))]));

async function three(t) {
  const env = { CONF_KEY: randomBytes(32).toString('base64') };
  return Promise.all(['c1', 'c2', 'c3'].map(async name => {
    const proc = start(t, name, CONF_SERVER, ['0', name], { env });
    const [, url] = await proc.says(/listening on (http:\S+)\n/);
    return { url, port: new URL(url).port };
  }));
}

suite('conformance by revision', { concurrency: false }, () => {
  for (const [revision, { scenarios }] of Object.entries(REVISIONS)) {
    test(`${revision}: the library's server, also three behind the gateway`, async t => {
      const replicas = await three(t);
      const args = ['--requirements', revision];
      const direct = await scoreOf(t, CLI, replicas[0].port, args);
      assert.equal(Object.keys(direct.summary).length, scenarios, direct.text);
      assert.deepEqual(failing(direct.summary), [], direct.text);
      const limpet = await gateway(t, { replicas: urls(replicas) });
      const through = await scoreOf(t, CLI, limpet.port, args);
      assert.deepEqual(failing(through.summary), [], through.text);
      assert.deepEqual(comparable(through.checks), comparable(direct.checks));
    });

    for (const program of ['conf-library', 'conf-host']) {
      test(`${revision}: liblimpet-server, ${program}`, async t => {
        const proc = start(t, program, path.join(BUILT, program), ['127.0.0.1:0', 'c1']);
        const [, url] = await proc.says(/listening on (http:\S+)\n/);
        const { summary, text } = await scoreOf(t, CLI, new URL(url).port,
          ['--requirements', revision]);
        assert.equal(Object.keys(summary).length, scenarios, text);
        assert.deepEqual(failing(summary), [], text);
      });
    }
  }
});
