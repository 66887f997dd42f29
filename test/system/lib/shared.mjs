// Replicas whose sessions are in a store, and what tests of them share.
import assert from 'node:assert/strict';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sessions } from './flow.mjs';
import { freePorts } from './ports.mjs';
import { LIMPET, start } from './proc.mjs';
import { answerOf, assertLost, assertRpcError, Session, toolCall } from './rpc.mjs';
import { randomChoice } from './sidecars.mjs';

const CONF_SERVER = path.join(process.env.LIMPET_BUILD ?? path.dirname(LIMPET),
  'test/interop/conf-server');
export async function limpets(t, count, store, flags = []) {
  const ports = await freePorts(count);
  return Promise.all(ports.map(async (port, i) => {
    const proc = start(t, `replica R${i + 1}`, LIMPET, ['replica', '--listen',
      `127.0.0.1:${port}`, '--name', `R${i + 1}`, '--session', 'shared', '--store', store.url,
      ...flags]);
    await proc.listening(port);
    return { port, proc, url: `http://127.0.0.1:${port}/mcp` };
  }));
}

// The library's server with the tools of the conformance suite.
export async function confs(t, count, store) {
  return Promise.all(Array.from({ length: count }, async (_, i) => {
    const proc = start(t, `C${i + 1}`, CONF_SERVER, ['0', `C${i + 1}`, '', store.url]);
    const [, url] = await proc.says(/listening on (http:\S+)\n/);
    return { proc, url, port: Number(new URL(url).port) };
  }));
}

// The same session, spoken to at another replica.
export function at(session, replica) {
  const other = new Session(replica.url);
  other.id = session.id;
  return other;
}

export const countOf = answer => Number(answerOf(answer).result.content[0].text);

// Until the replica's store is there: a request whose session nobody has is then 404, not 503.
export async function ready(replicas) {
  for (const replica of replicas) {
    await until('the store is there', async () =>
      (await at({ id: '7d6f3c1e-9a51-4a0c-8d7e-0c7c6f1b2a34' }, replica).ask('ping')).status === 404);
  }
}

export async function until(what, check, within = 20000) {
  const end = performance.now() + within;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (performance.now() > end) throw new Error(`never came: ${what}`);
    await sleep(50);
  }
}

export function assertAway(answer, id) {
  assertRpcError(answer, { status: 503, code: -32603, id });
  assert.equal(answer.headers['retry-after'], '1');
  assert.ok(answer.ms < 2000, `said after ${answer.ms} ms`);
}

const MANY = 12;
const ELICITATION = { elicitation: {} };

// Acceptance 3 of issue 4, for the store that is running already.
export async function twentyOfTwenty(t, store) {
  const replicas = await limpets(t, MANY, store);
  await ready(replicas);
  const front = await randomChoice(t, replicas);
  const { results, failures } = await sessions(20, 4, async () => {
    const one = await Session.open(front.url);
    const seen = new Set();
    for (let n = 1; n <= 20; n++) {
      const { result } = answerOf(await one.callTool('counter'));
      assert.equal(result.structuredContent.count, n);
      seen.add(result.structuredContent.replica);
    }
    assert.equal((await one.delete()).status, 200);
    assertLost(await one.ask('ping'), 21);
    return seen.size;
  });
  assert.deepEqual(failures, []);
  assert.ok(Math.max(...results) > 3, 'the calls went to many replicas');
}

export async function askedAcross(t, store) {
  const [a, b, c, d] = await confs(t, 4, store);
  await ready([a, b, c, d]);
  const one = await Session.open(a.url, { capabilities: ELICITATION });
  const listening = await at(one, c).stream();
  assert.equal(listening.status, 200);
  const asking = await one.openPost(toolCall(7, 'test_elicitation', { message: 'm' }));
  const { id } = await asking.events.message(m => m.method === 'elicitation/create');
  const answered = await at(one, b).post(JSON.stringify({ jsonrpc: '2.0', id,
    result: { action: 'accept', content: { a: 1 } } }));
  assert.equal(answered.status, 202, answered.text);
  const result = await asking.events.message(m => m.id === 7);
  assert.match(JSON.stringify(result), /action=accept/);
  // a client that takes no stream for the call is asked on the GET stream
  const plain = at(one, d).post(toolCall(8, 'test_elicitation', { message: 'n' }),
    { accept: 'application/json' });
  const question = await listening.events.message(m => m.method === 'elicitation/create');
  const taken = await at(one, b).post(JSON.stringify({ jsonrpc: '2.0', id: question.id,
    result: { action: 'decline' } }));
  assert.equal(taken.status, 202, taken.text);
  assert.match(JSON.stringify((await plain).json), /action=decline/);
  listening.close();
}

export async function incrementsAtOnce(t, store) {
  const [a, b] = await limpets(t, 2, store);
  await ready([a, b]);
  const one = await Session.open(a.url);
  const other = at(one, b);
  const answers = await Promise.all(Array.from({ length: 60 }, (_, i) =>
    (i % 2 ? one : other).post(toolCall(i, 'counter'))));
  const counts = answers.map(countOf).sort((x, y) => x - y);
  assert.deepEqual(counts, Array.from({ length: 60 }, (_, i) => i + 1));
}
