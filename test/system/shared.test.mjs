// `--session shared`: sessions in a real Redis; any replica serves any session, and a store that
// goes away loses nothing but time. Cases OWN-03, MSG-01, MSG-05, RES-01 to RES-03, AFF-01.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { session as officialSession, sessions } from './lib/flow.mjs';
import { LIMPET, run, start } from './lib/proc.mjs';
import { startRedis } from './lib/redis.mjs';
import { answerOf, assertLost, assertRpcError, initialize, notification, post, Session, toolCall }
  from './lib/rpc.mjs';
import { askedAcross, assertAway, at, confs, countOf, incrementsAtOnce, limpets, ready,
  twentyOfTwenty, until } from './lib/shared.mjs';
import { randomChoice } from './lib/sidecars.mjs';
import { Authority } from './lib/tls.mjs';

const ELICITATION = { elicitation: {} };

suite('shared sessions in one Redis', () => {
  test('AFF-01 12 replicas behind random choice: 20 of 20 calls, and none after DELETE',
    async t => twentyOfTwenty(t, await startRedis(t)));

  test('MSG-01 a question is answered on another replica, a GET stream is open on a third',
    async t => askedAcross(t, await startRedis(t)));

  test('increments at the same time on two replicas: none is lost',
    async t => incrementsAtOnce(t, await startRedis(t)));
});

suite('shared sessions: streams and messages', () => {
  test('RES-01, 02 a stream that broke off goes on at another replica, and only that one',
    async t => {
      const [a, b] = await limpets(t, 2, await startRedis(t));
      await ready([a, b]);
      const one = await Session.open(a.url);
      const call = (id, ms) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: {
        name: 'slow', arguments: { ms, steps: 8 }, _meta: { progressToken: id } } });
      const cut = await one.openPost(call(1, 2400));
      const beside = await one.openPost(call(2, 2400));
      const { events } = cut;
      await events.until(r => r.messages.length >= 2);
      const last = events.events.findLast(e => e.data && JSON.parse(e.data).params);
      const seen = JSON.parse(last.data).params.progress;
      cut.close();
      const again = await at(one, b).stream({ 'last-event-id': last.id });
      assert.equal(again.status, 200);
      const end = await again.events.message(m => m.id === 1, 10000);
      assert.match(end.result.content[0].text, /done in 8 steps/);
      const steps = again.events.messages.filter(m => m.params).map(m => m.params);
      assert.deepEqual(steps.map(p => p.progress),
        Array.from({ length: 8 - seen }, (_, i) => seen + 1 + i), 'what followed, and in order');
      assert.ok(steps.every(p => p.progressToken === 1), 'nothing of the other stream');
      await again.events.ended(5000);
      await beside.events.message(m => m.id === 2, 10000);
      // from the very start, after all is over; and for another session's client: nothing
      const whole = await at(one, b).stream({ 'last-event-id': events.events[0].id });
      await whole.events.message(m => m.id === 1, 5000);
      const stranger = await Session.open(b.url);
      const guess = await stranger.stream({ 'last-event-id': last.id });
      await sleep(300);
      assert.deepEqual(guess.events.messages, []);
      guess.close();
    });

  test('a message for the session comes on its GET stream, wherever that is; the newest counts',
    async t => {
      const [a, b, c] = await limpets(t, 3, await startRedis(t));
      await ready([a, b, c]);
      const one = await Session.open(a.url);
      assert.equal(await one.tool('notify'), 'sent 0');
      const first = await at(one, b).stream();
      assert.equal(await one.tool('notify', { count: 3 }), 'sent 3');
      await first.events.until(r => r.messages.length === 3);
      const second = await at(one, c).stream();
      await first.events.ended();
      assert.equal(await at(one, b).tool('notify', { count: 2 }), 'sent 2');
      await second.events.until(r => r.messages.length === 2);
      const last = second.events.events.at(-1).id;
      second.close();
      assert.equal(await one.tool('notify', { count: 2 }), 'sent 2');
      const third = await at(one, a).stream({ 'last-event-id': last });
      await third.events.until(r => r.messages.length === 2);
      const ids = [...first.events.events, ...second.events.events, ...third.events.events]
        .filter(e => e.data).map(e => e.id);
      assert.equal(new Set(ids).size, 7, 'RES-03 seven events, seven ids');
      third.close();
    });

  test('MSG-05 a call is cancelled at another replica; a cancellation of nothing is taken at once',
    async t => {
      const [a, b] = await limpets(t, 2, await startRedis(t));
      await ready([a, b]);
      const one = await Session.open(a.url);
      const other = at(one, b);
      const cancel = requestId => other.post(notification('notifications/cancelled', { requestId }));
      const idle = await cancel(99);
      assert.equal(idle.status, 202);
      assert.ok(idle.ms < 1000);
      const long = await one.openPost(toolCall(5, 'slow', { ms: 60000, steps: 100 }));
      await until('the call is known there', async () => {
        const answer = await cancel(5);
        assert.equal(answer.status, 202, answer.text);
        return long.events.end;
      });
      assert.ok(!long.events.messages.some(m => m.id === 5), 'a cancelled call gets no answer');
    });

  test('DELETE on one replica ends a call that runs on another, and its stream', async t => {
    const [a, b] = await limpets(t, 2, await startRedis(t));
    await ready([a, b]);
    const one = await Session.open(a.url);
    const long = await one.openPost(toolCall(5, 'slow', { ms: 60000, steps: 100 }));
    const listening = await one.stream();
    assert.equal((await at(one, b).delete()).status, 200);
    await Promise.all([long.events.ended(), listening.events.ended()]);
    assertLost(await one.ask('ping'), 1);
    assertLost(await at(one, b).ask('ping'), 1);
  });

  test('MSG-01 an answer for a replica that has died is not said to be taken', async t => {
    const [a, b] = await confs(t, 2, await startRedis(t));
    await ready([a, b]);
    const one = await Session.open(a.url, { capabilities: ELICITATION });
    const asking = await one.openPost(toolCall(7, 'test_elicitation', { message: 'm' }));
    const { id } = await asking.events.message(m => m.method === 'elicitation/create');
    await a.proc.stop('SIGKILL');
    const answered = await at(one, b).post(JSON.stringify({ jsonrpc: '2.0', id, result: {} }));
    assertRpcError(answered, { status: 503, code: -32603 });
    assert.match(answered.json.error.message, /did not take it in time/);
    assert.match(await at(one, b).tool('whoami'), /C2/);
  });

  test('every replica is replaced by a new one, one after the other: no call fails', async t => {
    const redis = await startRedis(t);
    let old = await limpets(t, 2, redis);
    await ready(old);
    const one = await Session.open(old[0].url);
    let count = 0;
    for (let round = 0; round < 3; round++) {
      const [next] = await limpets(t, 1, redis);
      await ready([next]);
      const leaving = old.shift();
      old.push(next);
      await leaving.proc.stop('SIGTERM');
      for (const replica of old) {
        assert.equal(countOf(await at(one, replica).callTool('counter')), ++count);
      }
    }
  });

  test('what is kept is bounded, and goes when nobody uses it', async t => {
    const redis = await startRedis(t);
    const [a, b] = await limpets(t, 2, redis);
    await ready([a, b]);
    const one = await Session.open(a.url);
    for (let i = 0; i < 40; i++) {
      const one_call = await one.openPost(toolCall(i, 'slow', { ms: 0, steps: 30 }));
      await one_call.events.message(m => m.id === i);
    }
    const key = `{limpet:${one.id.replaceAll('-', '')}}`;
    await until('the last one is kept', async () =>
      Number(await redis.ask('LLEN', `${key}:c`)) === 32);
    const keys = (await redis.ask('KEYS', '*')).split('\n');
    assert.ok(keys.length <= 32 + 4, `${keys.length} keys`);
    for (const each of keys) assert.ok(Number(await redis.ask('PTTL', each)) > 0, each);
    await one.delete();
    assert.equal(await redis.ask('KEYS', '*'), '');
  });
});

suite('OWN-03 the store is away', () => {
  test('what is here goes on, what is not is 503 at once; then all is as before', async t => {
    const redis = await startRedis(t);
    const [a, b] = await limpets(t, 2, redis);
    await ready([a, b]);
    const one = await Session.open(a.url);
    assert.equal(countOf(await one.callTool('counter')), 1);
    const running = await one.openPost(toolCall(5, 'slow', { ms: 3000, steps: 3 }));
    await redis.kill();
    await until('it is noticed', async () =>
      (await at(one, b).ask('ping')).status === 503);
    assertAway(await at(one, b).post(toolCall('x', 'whoami')), 'x');
    assertAway(await post(b.url, initialize(4)), 4);
    const here = await one.callTool('whoami');
    assert.equal(here.status, 200, here.text);
    assert.match(JSON.stringify(answerOf(await one.callTool('counter')).error), /nothing was counted/);
    await running.events.message(m => m.id === 5, 10000);
    await redis.start();
    await until('it is back', async () => (await at(one, b).ask('ping')).status === 200);
    await until('here too', async () => answerOf(await one.callTool('counter')).result);
    assert.equal(countOf(await at(one, b).callTool('counter')), 3);
    assert.match(b.proc.stderr, /The store at 127\.0\.0\.1:\d+ (refuses connections|ended)/);
    assert.match(b.proc.stderr, /is up/);
  });

  test('a store that says nothing is a store that is away', async t => {
    const redis = await startRedis(t);
    const [a, b] = await limpets(t, 2, redis);
    await ready([a, b]);
    const one = await Session.open(a.url);
    redis.freeze();
    assertAway(await at(one, b).post(toolCall('x', 'whoami')), 'x');
    assert.equal((await one.callTool('whoami')).status, 200);
    redis.thaw();
    await until('it is back', async () => (await at(one, b).ask('ping')).status === 200);
  });

  test('a replica that starts without its store says so, and serves when it comes', async t => {
    const redis = await startRedis(t);
    await redis.kill();
    const [a] = await limpets(t, 1, redis);
    assertAway(await post(a.url, initialize(1)), 1);
    await redis.start();
    await ready([a]);
    assert.equal(countOf(await (await Session.open(a.url)).callTool('counter')), 1);
  });
});

suite('shared sessions: the command line', () => {
  const refused = async (flags, pattern) => {
    const result = await run(LIMPET, ['replica', ...flags]);
    assert.equal(result.code, 64, result.stderr);
    assert.match(result.stderr, pattern);
  };

  test('what does not fit together is a sentence', async () => {
    const shared = ['--session', 'shared'];
    const store = ['--store', 'redis://127.0.0.1:1'];
    await refused(shared, /needs a store; say --store redis/);
    await refused(store, /are for --session shared/);
    await refused([...shared, '--store', 'http://x'], /--store: /);
    await refused([...shared, ...store, '--owner', 'm1'], /leave --owner and --replay out/);
    await refused([...shared, ...store, '--store-wait', '99'], /--store-wait/);
    await refused([...shared, ...store, '--sse-path', '/sse'], /--sse-path/);
    await refused(['--session', 'x'], /say --session local, shared or stateless/);
  });
});

test('a store behind TLS: with a known authority it is up, with an unknown one it is not', async t => {
  const authority = new Authority(t);
  const redis = await startRedis(t, { password: 'geheim', authority });
  const replica = async (env, line) => {
    const proc = start(t, 'replica', LIMPET, ['replica', '--listen', '127.0.0.1:0', '--session',
      'shared', '--store', redis.tlsUrl], { env });
    await proc.says(line, 10000);
    return (await proc.says(/listening on (http:\S+)/)).at(1);
  };
  const url = await replica({ SSL_CERT_FILE: authority.file }, /The store at \S+ is up\./);
  assert.equal(await (await Session.open(url)).tool('counter'), '1');
  await replica({ SSL_CERT_FILE: new Authority(t).file }, /does not get through the TLS handshake/);
});

test('the official client, every feature, at three replicas behind random choice', async t => {
  const replicas = await confs(t, 3, await startRedis(t));
  await ready(replicas);
  const front = await randomChoice(t, replicas);
  const { failures } = await sessions(10, 2, () => officialSession(front.url, 'library', { anywhere: true }));
  assert.deepEqual(failures, []);
});
