// Tasks of 2026-07-28 [E2]: each stays with the replica that began it, whoever in between is asked,
// and its name tells nothing of that replica.
import assert from 'node:assert/strict';
import http from 'node:http';
import { suite, test } from 'node:test';
import { gateway, keyFile, newKey } from './lib/gateway.mjs';
import { send } from './lib/http.mjs';
import { answerOf, modern, TAKES_TASKS } from './lib/rpc.mjs';
import { limpetReplicas, randomChoice, sidecars } from './lib/sidecars.mjs';
import { LIMPET, start } from './lib/proc.mjs';

const UNKNOWN = { code: -32602, message: 'Unknown task' };

async function ask(url, method, params) {
  const answer = await send(url, modern(1, method, params, { meta: TAKES_TASKS }));
  assert.equal(answer.status, 200, answer.text);
  return answerOf(answer);
}

async function begin(url, name, args = {}) {
  const { result } = await ask(url, 'tools/call', { name, arguments: { ...args, task: true } });
  assert.equal(result.resultType, 'task', JSON.stringify(result));
  return result.taskId;
}

const get = async (url, taskId) => {
  const { result, error } = await ask(url, 'tasks/get', { taskId });
  assert.equal(error, undefined, JSON.stringify(error));
  assert.equal(result.taskId, taskId, 'its name stays');
  return result;
};

// The whole life of two tasks; `next` tells where each request goes.
async function life(next) {
  const working = await begin(next(), 'slow', { ms: 600_000 });
  const asking = await begin(next(), 'ask', { question: 'Which?' });
  for (let i = 0; i < 20; i++) assert.equal((await get(next(), working)).status, 'working');
  assert.deepEqual((await ask(next(), 'tasks/cancel', { taskId: working })).error, undefined);
  assert.equal((await get(next(), working)).status, 'cancelled');
  const [[key, question]] = Object.entries((await get(next(), asking)).inputRequests);
  assert.equal(question.method, 'elicitation/create');
  const updated = await ask(next(), 'tasks/update', { taskId: asking,
    inputResponses: { [key]: { action: 'accept', content: { answer: 'blue' } } } });
  assert.equal(updated.error, undefined, JSON.stringify(updated));
  const { status, result } = await get(next(), asking);
  assert.equal(status, 'completed');
  assert.match(result.content[0].text, /blue/);
  return working;
}

suite('tasks stay with their replica', { concurrency: false }, () => {
  test('behind a gateway over three: 20 of 20, and nothing of the replica in a name', async t => {
    const limpet = await gateway(t, { replicas: await limpetReplicas(t, 3),
      server: { balance: 'round_robin' } });
    const names = await Promise.all(Array.from({ length: 9 }, () => life(() => limpet.url)));
    for (const name of names) assert.match(name, /^lp1_[\x21-\x7e]{1,508}$/);
  });

  test('two gateways with one key, also after both were started again', async t => {
    const replicas = await limpetReplicas(t, 3);
    const key = keyFile(t, newKey());
    const gateways = [await gateway(t, { replicas, key }), await gateway(t, { replicas, key })];
    let turn = 0;
    const next = () => gateways[turn++ % 2].url;
    await Promise.all(Array.from({ length: 6 }, () => life(next)));
    const kept = await begin(next(), 'slow', { ms: 600_000 });
    for (const limpet of gateways) await limpet.restart();
    for (let i = 0; i < 4; i++) assert.equal((await get(next(), kept)).status, 'working');
  });

  test('a name that is none, altered, or of a replica that is gone: unknown; others live', async t => {
    const procs = await Promise.all(['A', 'B'].map(name =>
      start(t, name, LIMPET, ['replica', '--name', name])));
    const urls = await Promise.all(procs.map(async proc =>
      (await proc.says(/listening on (http:\S+)\n/))[1]));
    const limpet = await gateway(t, { replicas: urls, server: { balance: 'round_robin' } });
    const names = [];
    for (let i = 0; i < 4; i++) names.push(await begin(limpet.url, 'slow', { ms: 600_000 }));
    const altered = names[0].slice(0, -2) + (names[0].endsWith('AA') ? 'BB' : 'AA');
    for (const taskId of [altered, 'lp1_', 'x'])
      for (const method of ['tasks/get', 'tasks/cancel'])
        assert.deepEqual((await ask(limpet.url, method, { taskId })).error, UNKNOWN, taskId);
    await procs[0].kill('SIGKILL');
    const seen = [];
    for (const taskId of names) {
      const answer = await send(limpet.url, modern(1, 'tasks/get', { taskId }, { meta: TAKES_TASKS }));
      seen.push(answer.status === 503 ? 'gone' : answerOf(answer).result?.status ?? 'gone');
      if (answer.status === 503) assert.ok(answer.headers['retry-after']);
      else assert.equal(answer.status, 200, answer.text);
    }
    assert.deepEqual(seen.toSorted(), ['gone', 'gone', 'working', 'working']);
  });

  for (const flags of [[], ['--ids', 'owner']]) {
    test(`sidecars behind random choice, ${flags.join(' ') || 'sealed'}`, async t => {
      const all = await sidecars(t, await limpetReplicas(t, 3), { flags });
      const front = await randomChoice(t, all);
      const names = await Promise.all(Array.from({ length: 6 }, () => life(() => front.url)));
      if (flags.length) for (const name of names) assert.match(name, /^m[123]\./);
      const unknown = flags.length ? 'm9.x' : 'lp1_x';
      assert.deepEqual((await ask(front.url, 'tasks/get', { taskId: unknown })).error, UNKNOWN);
    });
  }

  test('a server that tells of its tasks on streams, and what is no task, byte for byte', async t => {
    const server = http.createServer(async (request, response) => {
      const { id, method, params } = JSON.parse(Buffer.concat(await request.toArray()));
      const say = result => `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`;
      const isPlain = params.name === 'plain';
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(': first\n\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n');
      if (isPlain) response.end(say({ content: [], structuredContent: { taskId: 'mine' } }));
      else if (method === 'tools/call') response.end(say({ resultType: 'task', taskId: 'own-7' }));
      else {
        assert.equal(request.headers['mcp-name'], 'own-7');
        response.end(say({ resultType: 'complete', taskId: params.taskId, status: 'working' }));
      }
    });
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    t.after(() => { server.closeAllConnections(); server.close(); });
    const limpet = await gateway(t, { replicas: [`http://127.0.0.1:${server.address().port}/mcp`] });
    const call = name => send(limpet.url, modern(1, 'tools/call', { name }, { meta: TAKES_TASKS }));
    const begun = await call('any');
    const { taskId } = answerOf(begun).result;
    assert.match(taskId, /^lp1_/);
    assert.match(begun.text, /notifications\/progress/);
    assert.equal((await get(limpet.url, taskId)).status, 'working');
    const plain = await call('plain');
    assert.equal(answerOf(plain).result.structuredContent.taskId, 'mine');
  });
});
