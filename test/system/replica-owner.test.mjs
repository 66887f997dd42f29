// `limpet replica` with owner ids and without sessions: the owner-id table [S2] to [S5] for POST, GET
// and DELETE, the platform's replay between twelve of them, and `--session stateless` [L3].
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { suite, test } from 'node:test';
import { send } from './lib/http.mjs';
import { ask, assertNotHere, assertOwnerTable, METHODS, UUID } from './lib/owner-table.mjs';
import { LIMPET, run, start } from './lib/proc.mjs';
import { answerOf, assertLost, initialize, modern, post, request, Session, SESSION, TAKES_TASKS }
  from './lib/rpc.mjs';
import { fly } from './lib/sidecars.mjs';

const PLAIN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

async function replica(t, flags = [], env = {}) {
  const proc = start(t, 'limpet replica', LIMPET, ['replica', ...flags], { env });
  const [, url] = await proc.says(/listening on (http:\S+)\n/);
  return { proc, url };
}

suite('AFF-02 the owner-id table', () => {
  for (const [flags, value] of [[['--replay', 'fly'], 'prefer_instance=m2;timeout=5s'],
    [['--replay', 'fly-instance'], 'instance=m2'], [[], undefined]]) {
    test(`${flags.join(' ') || 'no replay'}: all rows`, async t => {
      const { url } = await replica(t, ['--owner', 'm1', ...flags]);
      await assertOwnerTable(url, { replay: value });
      const session = await Session.open(url);
      assert.match(session.id, /^m1\./);
      assert.equal((await session.ask('ping')).status, 200);
    });
  }

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
      for (const method of METHODS) assertNotHere(await ask(url, method, `m2.${UUID}`), method);
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

  test('a bad --owner: it does not start', async () => {
    for (const owner of ['m-1', 'm.1', 'm'.repeat(33), 'm\u00e9']) {
      const ended = await run(LIMPET, ['replica', '--owner', owner]);
      assert.notEqual(ended.code, 0);
      assert.match(ended.stderr, /--owner/);
    }
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

// Twelve replicas, m1 to m12, as a platform knows them.
const machines = (t, flags) => Promise.all(Array.from({ length: 12 }, async (_, i) => {
  const self = `m${i + 1}`;
  const { url } = await replica(t, ['--name', self, ...flags(self)]);
  return { self, port: Number(new URL(url).port) };
}));

suite('twelve replicas behind random choice', { concurrency: false }, () => {
  test('owner ids and replay: 20 of 20 calls in each of 100 sessions', async t => {
    const edge = await fly(t, await machines(t, self => ['--owner', self, '--replay', 'fly']));
    const owners = new Set();
    const run = async () => {
      const session = await Session.open(edge.url);
      owners.add(session.id.split('.')[0]);
      for (let i = 1; i <= 20; i++) assert.equal(await session.tool('counter'), String(i)); // 20 of 20
      assert.equal((await session.delete()).status, 200);
      assertLost(await session.ask('ping'), 21);
    };
    for (let i = 0; i < 100; i += 10) await Promise.all(Array.from({ length: 10 }, run));
    assert.equal(owners.size, 12, 'every replica has opened sessions');
    assert.ok(edge.log.length > 1500, `${edge.log.length} replays`);
    assert.ok(edge.log.every(entry => entry.to === entry.id && entry.timeout === 5 && !entry.isLoop));
    assert.deepEqual(new Set(edge.log.map(entry => entry.method)), new Set(['POST', 'DELETE']));
  });

  test('tasks of 2026-07-28: made, asked for 20 of 20, answered and cancelled', async t => {
    const edge = await fly(t, await machines(t, self => ['--owner', self, '--replay', 'fly']));
    const ask = async (method, params) => {
      const answer = await send(edge.url, modern(1, method, params, { meta: TAKES_TASKS }));
      assert.equal(answer.status, 200, answer.text);
      return answerOf(answer);
    };
    const begin = async (name, args) => {
      const { result } = await ask('tools/call', { name, arguments: { ...args, task: true } });
      assert.equal(result.resultType, 'task', JSON.stringify(result));
      assert.match(result.taskId, /^m\d+\./);
      return result.taskId;
    };
    const get = async taskId => (await ask('tasks/get', { taskId })).result;
    const run = async () => {
      const [working, asking] = [await begin('slow', { ms: 600_000 }), await begin('ask')];
      for (let i = 0; i < 20; i++) assert.equal((await get(working)).status, 'working');
      await ask('tasks/cancel', { taskId: working });
      assert.equal((await get(working)).status, 'cancelled');
      const [[key]] = Object.entries((await get(asking)).inputRequests);
      await ask('tasks/update', { taskId: asking, inputResponses:
        { [key]: { action: 'accept', content: { answer: 'blue' } } } });
      const { status, result } = await get(asking);
      assert.equal(status, 'completed');
      assert.match(result.content[0].text, /blue/);
    };
    await Promise.all(Array.from({ length: 10 }, run));
    assert.ok(edge.log.length > 150, `${edge.log.length} replays`);
    assert.ok(edge.log.every(entry => entry.to === entry.id && !entry.isLoop));
    const { error } = await ask('tasks/get', { taskId: `m1.${UUID}` });
    assert.deepEqual(error, { code: -32602, message: 'Unknown task' });
  });

  test('--session stateless: tools/list as the first request, 20 of 20, no id anywhere', async t => {
    const edge = await fly(t, await machines(t, () => ['--session', 'stateless']));
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
      const refused = await ask(edge.url, method);
      assert.equal(refused.status, 405);
      assert.equal(refused.headers.allow, 'POST');
    }
  });
});
