// Cases of the field that a server must get right, on the library's own: the answer to a question on a
// fresh connection and on the wrong replica (MSG-01), a question that nobody hears (MSG-04), ids
// (MSG-02, MSG-03, STA-12), cancel (MSG-05), DELETE in every form (LIF-07), a stop that neither hangs
// nor cuts (LIF-05).
import assert from 'node:assert/strict';
import path from 'node:path';
import { suite, test } from 'node:test';
import { gateway } from '../system/lib/gateway.mjs';
import { send } from '../system/lib/http.mjs';
import { LIMPET, sleep, start } from '../system/lib/proc.mjs';
import { answerOf, assertLost, initialize, notification, post, request, Session, SESSION,
  toolCall } from '../system/lib/rpc.mjs';

const CONF_SERVER = path.join(process.env.LIMPET_BUILD ?? path.dirname(LIMPET),
  'test/interop/conf-server');
const CAN_ELICIT = { capabilities: { elicitation: {} } };

async function started(t, name, command, args) {
  const proc = start(t, name, command, args);
  const [, url] = await proc.says(/listening on (http:\S+)\n/);
  return { proc, url };
}
const conf = (t, name, ...owner) => started(t, name, CONF_SERVER, ['0', name, ...owner]);
const replica = (t, ...flags) => started(t, 'limpet replica', LIMPET, ['replica', ...flags]);

const reply = (id, result) => JSON.stringify({ jsonrpc: '2.0', id, result });
const answered = { action: 'accept', content: { n: 2 } };

// A call that asks; `answer` gets the question's id and brings the answer in. The call's result.
async function elicited(session, id, answer) {
  const call = await session.openPost(toolCall(id, 'test_elicitation', { message: 'how many?' }));
  const question = await call.events.message(m => m.method === 'elicitation/create');
  await answer(question.id);
  const result = await call.events.message(m => m.id === id && !m.method);
  call.close();
  return result.result.content[0].text;
}

suite('questions to the client', () => {
  test('MSG-01 three servers, a gateway: 30 answers on fresh connections after 2 s', async t => {
    const servers = await Promise.all(['a', 'b', 'c'].map(name => conf(t, name)));
    const limpet = await gateway(t, { replicas: servers.map(server => server.url) });
    const texts = await Promise.all(Array.from({ length: 30 }, async (_, i) => {
      const session = await Session.open(limpet.url, CAN_ELICIT);
      return elicited(session, i, async question => {
        await sleep(2000);
        assert.equal((await session.post(reply(question, answered))).status, 202);
      });
    }));
    for (const text of texts) assert.match(text, /action=accept, content=\{"n":2\}/);
    const dead = await post(servers[0].url, reply('x', answered),
      { [SESSION]: '01234567-89ab-4def-8123-456789abcdef' });
    assert.equal(dead.status, 404);
  });

  test('MSG-01 the answer reaches the wrong server first: replayed, and the tool ends', async t => {
    const [m1, m2] = [await conf(t, 'm1', 'm1'), await conf(t, 'm2', 'm2')];
    const session = await Session.open(m1.url, CAN_ELICIT);
    const text = await elicited(session, 1, async question => {
      const body = reply(question, answered);
      const wrong = await post(m2.url, body, session.headers);
      assert.equal(wrong.headers['fly-replay'], 'prefer_instance=m1;timeout=5s');
      const right = await post(m1.url, body,
        { ...session.headers, 'fly-replay-src': 'instance=m2' });
      assert.equal(right.status, 202);
    });
    assert.match(text, /action=accept/);
  });
});

suite('MSG-04 a question that nobody hears', () => {
  const cut = async url => {
    const session = await Session.open(url, CAN_ELICIT);
    const call = await session.openPost(toolCall(1, 'test_elicitation', { message: 'anyone?' }));
    await call.events.message(m => m.method === 'elicitation/create');
    const [{ id }] = call.events.events;
    call.close();
    return { session, id, asked: performance.now() };
  };

  test('it is asked on the stream that comes after two seconds', async t => {
    const { url } = await conf(t, 'a');
    const { session, id } = await cut(url);
    await sleep(2000);
    const rest = await session.stream({ 'last-event-id': id });
    const question = await rest.events.message(m => m.method === 'elicitation/create');
    assert.equal((await session.post(reply(question.id, answered))).status, 202);
    const result = await rest.events.message(m => m.id === 1 && !m.method);
    assert.match(result.result.content[0].text, /action=accept/);
    rest.close();
  });

  test('nobody comes, or nobody answers: the call ends in its time', async t => {
    const { url } = await conf(t, 'a');
    const { session, id, asked } = await cut(url);
    const rest = await session.stream({ 'last-event-id': id });
    const result = await rest.events.message(m => m.id === 1 && !m.method, 12_000);
    const took = performance.now() - asked;
    assert.ok(took > 4000 && took < 9000, `${took} ms`);
    assert.equal(result.result.isError, true);
    rest.close();
    assert.equal((await session.ask('ping')).status, 200);
  });
});

suite('ids', () => {
  test("MSG-02 everybody's request id is 1: 50 right answers; 1 and \"1\" are two", async t => {
    const { url } = await replica(t);
    await Promise.all(Array.from({ length: 50 }, async (_, i) => {
      const session = await Session.open(url);
      const args = { ms: Math.floor(Math.random() * 300), steps: i + 1 };
      const answer = answerOf(await session.post(toolCall(1, 'slow', args)));
      assert.equal(answer.result.content[0].text, `done in ${i + 1} steps`);
    }));
    const session = await Session.open(url);
    const [number, string] = await Promise.all([1, '1'].map(async id =>
      answerOf(await session.post(toolCall(id, 'slow', { ms: 50, steps: typeof id === 'number' ? 1 : 2 })))));
    assert.equal(number.id, 1);
    assert.equal(number.result.content[0].text, 'done in 1 steps');
    assert.equal(string.id, '1');
    assert.equal(string.result.content[0].text, 'done in 2 steps');
  });

  test('MSG-03, STA-12 ids come back byte for byte, in results, errors and refusals', async t => {
    const { url } = await replica(t);
    const session = await Session.open(url);
    const lost = { [SESSION]: '01234567-89ab-4def-8123-456789abcdef' };
    for (const id of ['0', '-1', '1', '"1"', '""', '"\\u00e9\\u0000"', '"\\ud83d\\ude00"', '"abc-ü"',
      '9007199254740993', '18446744073709551616']) {
      for (const method of ['ping', 'no/such']) {
        const body = `{"jsonrpc":"2.0","id":${id},"method":"${method}"}`;
        assert.ok((await session.post(body)).text.includes(`"id":${id},`), `${method} ${id}`);
        const refused = await post(url, body, lost);
        assert.equal(refused.status, 404);
        assert.ok(refused.text.includes(`"id":${id},`), refused.text);
      }
    }
    assert.equal((await session.post('{"jsonrpc":"2.0","id":1.5,"method":"ping"}')).status, 400);
    assertLost(await post(url, notification('notifications/initialized'), lost));
  });

  test('MSG-05 a cancel ends the call of its own session only', async t => {
    const { url } = await replica(t);
    const [a, b] = [await Session.open(url), await Session.open(url)];
    const calls = [a, b].map(session => session.post(toolCall(5, 'slow', { ms: 400, steps: 1 })));
    await sleep(100);
    const cancel = id => a.post(notification('notifications/cancelled', { requestId: id }));
    assert.equal((await cancel(99)).status, 202);
    assert.equal((await cancel(5)).status, 202);
    const [cancelled, done] = await Promise.all(calls);
    assert.equal(answerOf(cancelled), undefined);
    assert.equal(answerOf(done).result.content[0].text, 'done in 1 steps');
  });
});

suite('the life of a session', () => {
  test('STA-06 initialize that still carries an old id is a new session', async t => {
    const { url } = await replica(t);
    const first = await Session.open(url);
    const again = await post(url, initialize(), { [SESSION]: first.id });
    assert.equal(again.status, 200);
    assert.notEqual(again.headers[SESSION], first.id);
    assert.equal((await first.ask('ping')).status, 200);
  });

  test('LIF-07 DELETE in every form frees the id at once; a second one is 404', async t => {
    const { url } = await replica(t);
    for (const headers of [{}, { 'content-length': '0' }, { 'content-type': 'application/json' }]) {
      const session = await Session.open(url);
      const remove = () =>
        send(url, { method: 'DELETE', headers: { [SESSION]: session.id, ...headers } });
      assert.equal((await remove()).status, 200);
      assert.equal((await remove()).status, 404);
      assertLost(await session.ask('ping'), 1);
    }
    assert.equal((await send(url, { method: 'DELETE' })).status, 400);
  });

  const stopAfter = async (t, ms, streams) => {
    const { proc, url } = await replica(t);
    const session = await Session.open(url);
    for (let i = 0; i < streams; i++) await (await Session.open(url)).stream();
    const call = ms && await session.openPost(toolCall(1, 'slow', { ms, steps: 1 }));
    const began = performance.now();
    const ended = await proc.stop('SIGTERM', 20_000);
    const took = performance.now() - began;
    assert.equal(ended.code, 0);
    if (call) await call.events.ended();
    return { ms: took, answer: call && call.events.messages.at(-1) };
  };

  test('LIF-05 a stop ends idle streams, waits for a call, and has a bound', async t => {
    const [idle, short, long] = await Promise.all(
      [stopAfter(t, 0, 0), stopAfter(t, 1500, 20), stopAfter(t, 60_000, 1)]);
    assert.ok(idle.ms < 500, `nothing open: ${idle.ms} ms`);
    assert.ok(short.ms > 1000 && short.ms < 3000, `a call of 1.5 s: ${short.ms} ms`);
    assert.equal(short.answer.result.content[0].text, 'done in 1 steps');
    assert.ok(long.ms > 9000 && long.ms < 12_500, `a call of 60 s: ${long.ms} ms`);
    assert.equal(long.answer.error.code, -32603);
  });
});
