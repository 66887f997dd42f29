// The library's server over HTTP+SSE (2024-11-05) with the official client: directly, behind the
// gateway, behind sidecars, and with the platform's replay asked for by the servers themselves.
import assert from 'node:assert/strict';
import path from 'node:path';
import { suite, test } from 'node:test';
import { session, sessions } from '../system/lib/flow.mjs';
import { gateway } from '../system/lib/gateway.mjs';
import { openEvents, send } from '../system/lib/http.mjs';
import { LIMPET, run, start } from '../system/lib/proc.mjs';
import { assertLost, post, request } from '../system/lib/rpc.mjs';
import { fly, randomChoice, sidecars } from '../system/lib/sidecars.mjs';

const CONF_SERVER = path.join(process.env.LIMPET_BUILD ?? path.dirname(LIMPET),
  'test/interop/conf-server');
const OWNER = ['--ids', 'owner'];
const SSE = ['--sse-path', '/sse'];

async function started(t, name, command, args) {
  let proc;
  t.after(() => proc?.stop());
  proc = start(t, name, command, args);
  const [, url] = await proc.says(/listening on (http:\S+)\n/);
  return { proc, url, port: Number(new URL(url).port), self: name };
}
const servers = (t, withOwner = false) => Promise.all(['m1', 'm2', 'm3'].map(name =>
  started(t, name, CONF_SERVER, ['0', name, ...(withOwner ? [name] : [])])));
const urls = all => all.map(server => server.url);

async function assertSessions(url, owners) {
  const { results, failures } =
    await sessions(12, 12, () => session(url, 'library', { sse: true }));
  assert.deepEqual(failures, []);
  assert.equal(results.length, 12);
  if (owners) assert.ok(new Set(results.map(result => result.owner)).size > 1);
}

suite('the library over old SSE, official client', () => {
  test('directly', async t => {
    const [server] = await servers(t);
    await assertSessions(new URL('/sse', server.url));
  });

  test('behind the gateway, three servers', async t => {
    const limpet = await gateway(t,
      { replicas: urls(await servers(t)), server: { sse_path: '/sse' } });
    await assertSessions(limpet.at('/sse'), true);
  });

  for (const [what, flags] of [['sealed ids', SSE], ['owner ids', [...OWNER, ...SSE]]]) {
    test(`behind a random choice, a sidecar each, ${what}`, async t => {
      const all = await sidecars(t, urls(await servers(t)), { flags });
      await assertSessions((await randomChoice(t, all)).at('/sse'), true);
    });
  }

  test('behind a platform that replays for the servers themselves', async t => {
    const front = await fly(t, await servers(t, true));
    await assertSessions(front.at('/sse'), true);
    assert.ok(front.log.some(entry => entry.method === 'POST'), 'a message was replayed');
  });
});

suite('limpet replica --sse-path', () => {
  const replica = async (t, ...flags) => {
    const { url } = await started(t, 'limpet replica', LIMPET, ['replica', ...flags]);
    return new URL('/sse', url);
  };
  const opened = async url => {
    const stream = await openEvents(url, { headers: { accept: 'text/event-stream' } });
    const event = await stream.events.until(r => r.events[0], 5000, 'the endpoint event');
    assert.equal(event.type, 'endpoint');
    return { stream, address: new URL(event.data, url) };
  };

  test('SSE-01 a session lives as long as its stream', async t => {
    const url = await replica(t, '--sse-path', '/sse');
    const { stream, address } = await opened(url);
    assert.equal((await post(address, request(1, 'ping'))).status, 202);
    await stream.events.message(m => m.id === 1);
    stream.close();
    const other = await opened(url); // whatever it takes until the server has seen the end
    for (let status = 202; status === 202;) {
      const answer = await post(address, request(2, 'ping'));
      ({ status } = answer);
      if (status !== 202) assertLost(answer, 2);
    }
    assert.equal((await post(other.address, request(1, 'ping'))).status, 202);
    other.stream.close();
  });

  test('off by default, and only with sessions of the process', async t => {
    assert.equal((await send(await replica(t), { headers: { accept: '*/*' } })).status, 404);
    for (const [flags, words] of [[['--sse-path', 'sse'], /--sse-path: "sse" is no path/],
      [['--sse-path', '/sse', '--session', 'stateless'], /needs --session local/],
      [['--sse-path', '/sse', '--era', 'modern'], /another --era than modern/]]) {
      const { code, stderr } = await run(LIMPET, ['replica', ...flags]);
      assert.equal(code, 64);
      assert.match(stderr, words);
    }
  });
});
