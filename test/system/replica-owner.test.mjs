// `limpet replica` with owner ids and without sessions: the owner-id table [S2] to [S5] for POST, GET
// and DELETE, the platform's replay between twelve of them, and `--session stateless` [L3].
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import http from 'node:http';
import { suite, test } from 'node:test';
import { send } from './lib/http.mjs';
import { LIMPET, start } from './lib/proc.mjs';
import { answerOf, assertLost, assertRpcError, initialize, post, POST_HEADERS, request, Session,
  SESSION } from './lib/rpc.mjs';

const UUID = '01234567-89ab-4def-8123-456789abcdef';
const PLAIN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

async function replica(t, flags = [], env = {}) {
  const proc = start(t, 'limpet replica', LIMPET, ['replica', ...flags], { env });
  const [, url] = await proc.says(/listening on (http:\S+)\n/);
  return { proc, url };
}

const REQUESTS = {
  POST: (id, extra) => ({ method: 'POST', body: request('x', 'tools/list'),
    headers: { ...POST_HEADERS, ...(id !== undefined && { [SESSION]: id }), ...extra } }),
  GET: (id, extra) => ({ method: 'GET', headers: { accept: 'text/event-stream',
    ...(id !== undefined && { [SESSION]: id }), ...extra } }),
  DELETE: (id, extra) => ({ method: 'DELETE',
    headers: { ...(id !== undefined && { [SESSION]: id }), ...extra } }),
};

function assertReplay(answer, value) {
  assert.equal(answer.status, 204, answer.text);
  assert.equal(answer.headers['fly-replay'], value);
  assert.equal(answer.text, '');
}

function assertNotHere(answer, method) {
  assertLost(answer, method === 'POST' ? 'x' : null);
  assert.equal(answer.headers['fly-replay'], undefined);
  assert.ok(!answer.text.includes('m2'), 'nothing is echoed');
}

suite('the owner-id table', () => {
  for (const [method, make] of Object.entries(REQUESTS)) {
    test(method, async t => {
      const { url } = await replica(t, ['--owner', 'm1', '--replay', 'fly']);
      const ask = (id, extra) => send(url, make(id, extra));
      const value = 'prefer_instance=m2;timeout=5s';
      assertReplay(await ask(`m2.${UUID}`), value);
      assertReplay(await ask(`m2.${UUID}`, { 'limpet-hop': 'v1.forged' }), value);
      assertReplay(await ask('m2.any.thing-at_all'), value);
      for (const id of [`m1.${UUID}`, UUID, 'm2;x=y', `m2;x=y.${UUID}`, `${'m'.repeat(33)}.1`, '.',
        'm2.', `.${UUID}`, 'm\u00e9.1']) {
        assertNotHere(await ask(id), method);
      }
      for (const mark of [{ 'fly-replay-src': 'instance=m3;t=1' },
        { 'fly-replay-failed': 'instance=m2' }]) {
        assertNotHere(await ask(`m2.${UUID}`, mark), method);
      }
      const none = await ask(undefined);
      assertRpcError(none, { status: 400, code: -32000, id: method === 'POST' ? 'x' : null });
    });
  }

  test('--replay fly-instance names the instance, or none', async t => {
    const { url } = await replica(t, ['--owner', 'm1', '--replay', 'fly-instance']);
    assertReplay(await send(url, REQUESTS.POST(`m2.${UUID}`)), 'instance=m2');
  });

  test('a body over 1,000,000 bytes is 413 by its head; initialize is answered here', async t => {
    const { url } = await replica(t, ['--owner', 'm1', '--replay', 'fly']);
    const large = await post(url, request('x', 'ping', { text: 'x'.repeat(1_000_000) }),
      { [SESSION]: `m2.${UUID}` }).catch(error => error);
    if (large.status) assert.match(large.text, /1,000,000 bytes/);
    assert.ok(large.status === 413 || ['ECONNRESET', 'EPIPE'].includes(large.code), large);
    const opened = await post(url, initialize(), { [SESSION]: `m2.${UUID}` });
    assert.equal(opened.status, 200);
    assert.match(opened.headers[SESSION], /^m1\./);
  });
});

suite('where the owner id comes from', () => {
  const minted = async (t, flags, env) => {
    const { proc, url } = await replica(t, flags, env);
    return { proc, url, id: (await Session.open(url)).id };
  };

  test('--owner before FLY_MACHINE_ID; nothing: plain ids, no replay', async t => {
    assert.match((await minted(t, ['--owner', 'm1'], { FLY_MACHINE_ID: 'f9' })).id, /^m1\./);
    assert.match((await minted(t, [], { FLY_MACHINE_ID: 'f9' })).id, /^f9\./);
    for (const env of [{}, { FLY_MACHINE_ID: '' }]) {
      const { id, url } = await minted(t, [], env);
      assert.match(id, PLAIN_ID);
      for (const [method, make] of Object.entries(REQUESTS)) {
        assertNotHere(await send(url, make(`m2.${UUID}`)), method);
      }
    }
  });

  test('HOSTNAME only where chosen: 16 digits of its SHA-256', async t => {
    const env = { HOSTNAME: 'pod-7.example' };
    const digits = createHash('sha256').update(env.HOSTNAME).digest('hex').slice(0, 16);
    assert.match((await minted(t, [], env)).id, PLAIN_ID);
    const flags = ['--owner-from-hostname'];
    assert.equal((await minted(t, flags, env)).id.split('.')[0], digits);
    assert.match((await minted(t, flags, { ...env, FLY_MACHINE_ID: 'f9' })).id, /^f9\./);
  });

  test('a bad FLY_MACHINE_ID is said, and there is no owner', async t => {
    const { proc, id } = await minted(t, [], { FLY_MACHINE_ID: 'not-good' });
    assert.match(id, PLAIN_ID);
    assert.match(proc.stderr, /FLY_MACHINE_ID is no owner id/);
  });
});

suite('allowed origins', () => {
  const asked = (url, origin) => post(url, initialize(), { origin });

  test('LIMPET_ALLOWED_ORIGINS replaces the default', async t => {
    const { url } = await replica(t, [],
      { LIMPET_ALLOWED_ORIGINS: 'https://app.example, https://b.example' });
    assert.equal((await asked(url, 'https://b.example')).status, 200);
    for (const origin of ['https://evil.example', 'http://localhost', 'null']) {
      assert.equal((await asked(url, origin)).status, 403);
    }
    const plain = await replica(t);
    assert.equal((await asked(plain.url, 'http://localhost:6274')).status, 200);
    assert.equal((await asked(plain.url, 'https://b.example')).status, 403);
  });
});

suite('streams', () => {
  test('a call whose connection is cut goes on, and Last-Event-ID brings the rest', async t => {
    const { url } = await replica(t);
    const session = await Session.open(url);
    const call = await session.openPost(request(7, 'tools/call', { name: 'slow',
      arguments: { ms: 600, steps: 3 }, _meta: { progressToken: 'p' } }));
    await call.events.message(m => m.params?.progress === 1);
    const [priming] = call.events.events;
    assert.equal(priming.id, '1-0');
    call.close();
    const rest = await session.stream({ 'last-event-id': '1-1' });
    await rest.events.ended();
    assert.deepEqual(rest.events.messages.map(m => m.params?.progress ?? m.id), [2, 3, 7]);
  });
});

// A balancer that picks at random and replays once, as the platform does. `replays` counts.
async function platform(t, machines) {
  const names = Object.keys(machines);
  const edge = { replays: 0, answers: [] };
  const server = http.createServer(async (incoming, outgoing) => {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const ask = (name, extra = {}) => send(machines[name], { method: incoming.method,
      headers: { ...incoming.headers, ...extra, host: new URL(machines[name]).host },
      body: chunks.length ? Buffer.concat(chunks) : undefined });
    const first = names[Math.floor(Math.random() * names.length)];
    let answer = await ask(first);
    const target = /^prefer_instance=(\w+);timeout=5s$/.exec(answer.headers['fly-replay'])?.[1];
    if (target) {
      edge.replays++;
      answer = await ask(target, { 'fly-replay-src': `instance=${first}` });
      assert.equal(answer.headers['fly-replay'], undefined, 'never twice');
    }
    edge.answers.push(answer);
    outgoing.writeHead(answer.status, answer.headers);
    outgoing.end(answer.text);
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  t.after(() => { server.closeAllConnections(); server.close(); });
  edge.url = `http://127.0.0.1:${server.address().port}/mcp`;
  return edge;
}

suite('twelve replicas behind random choice', { concurrency: false }, () => {
  test('owner ids and replay: 20 of 20 calls in each of 100 sessions', async t => {
    const machines = {};
    for (let i = 1; i <= 12; i++) {
      const flags = ['--owner', `m${i}`, '--replay', 'fly', '--name', `m${i}`];
      machines[`m${i}`] = (await replica(t, flags)).url;
    }
    const edge = await platform(t, machines);
    const owners = new Set();
    const run = async () => {
      const session = await Session.open(edge.url);
      owners.add(session.id.split('.')[0]);
      for (let i = 1; i <= 20; i++) assert.equal(await session.tool('counter'), String(i));
      assert.equal((await session.delete()).status, 200);
      assertLost(await session.ask('ping'), 21);
    };
    for (let i = 0; i < 100; i += 10) await Promise.all(Array.from({ length: 10 }, run));
    assert.equal(owners.size, 12, 'every replica has opened sessions');
    assert.ok(edge.replays > 1500, `${edge.replays} replays`);
  });

  test('--session stateless: tools/list as the first request, 20 of 20, no id anywhere', async t => {
    const machines = {};
    for (let i = 1; i <= 12; i++) {
      machines[`r${i}`] = (await replica(t, ['--session', 'stateless', '--name', `r${i}`])).url;
    }
    const edge = await platform(t, machines);
    for (let i = 0; i < 20; i++) {
      const answer = await post(edge.url, request(i, 'tools/list'));
      assert.equal(answer.status, 200, answer.text);
      assert.ok(answerOf(answer).result.tools.some(tool => tool.name === 'whoami'));
    }
    const opened = await post(edge.url, initialize());
    assert.equal(opened.status, 200);
    assert.equal(answerOf(opened).result.serverInfo.name, 'limpet-replica');
    for (const answer of edge.answers) assert.equal(answer.headers[SESSION], undefined);
    for (const method of ['GET', 'DELETE']) {
      const refused = await send(edge.url, REQUESTS[method]());
      assert.equal(refused.status, 405);
      assert.equal(refused.headers.allow, 'POST');
    }
  });
});
