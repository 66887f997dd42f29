// `limpet replica` in its sessionless era (2026-07-28): the official client, pinned to it or finding
// it out, directly and spread over three replicas by the gateway; both eras on one address.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import path from 'node:path';
import { folder, gateway } from '../system/lib/gateway.mjs';
import { freshFetch, send } from '../system/lib/http.mjs';
import { LIMPET, run, start } from '../system/lib/proc.mjs';
import { assertRpcError, MODERN, modern, openEvents, Session, SESSION } from '../system/lib/rpc.mjs';

async function replica(t, name, flags = []) {
  const proc = start(t, name, LIMPET, ['replica', '--name', name, ...flags]);
  const [, url] = await proc.says(/listening on (http:\S+)\n/);
  return { proc, url };
}

const three = (t, flags) => Promise.all(['r1', 'r2', 'r3'].map(name => replica(t, name, flags)));

async function connect(t, url, mode, { capabilities = {}, onAnswer, onElicit } = {}) {
  const client = new Client({ name: 'limpet-test', version: '1' },
    { capabilities, versionNegotiation: { mode } });
  if (onElicit) client.setRequestHandler('elicitation/create', onElicit);
  await client.connect(new StreamableHTTPClientTransport(new URL(url),
    { fetch: freshFetch({ onAnswer }) }));
  t.after(() => client.close());
  return client;
}

const text = result => result.content[0].text;
const call = (client, name, args = {}) => client.callTool({ name, arguments: args });

suite('limpet replica in 2026-07-28', () => {
  for (const [how, mode] of [['pinned', { pin: MODERN }], ['found out', 'auto']]) {
    test(`the official client, ${how}`, async t => {
      const { url } = await replica(t, 'r1');
      const answers = [];
      const client = await connect(t, url, mode, { onAnswer: answer => answers.push(answer) });
      const tools = (await client.listTools()).tools.map(tool => tool.name);
      assert.ok(tools.includes('whoami'), tools);
      assert.equal(text(await call(client, 'whoami')), 'r1');
      assert.equal(text(await call(client, 'echo', { message: 'grüße' })), 'grüße');
      assert.equal(text(await call(client, 'slow', { ms: 20, steps: 2 })), 'done in 2 steps');
      await assert.rejects(call(client, 'none'), /Unknown tool/);
      for (const answer of answers) assert.equal(answer.headers[SESSION], undefined);
    });
  }

  test('three behind the gateway: any of them answers, no session anywhere', async t => {
    const replicas = await three(t);
    const limpet = await gateway(t, { replicas: replicas.map(r => r.url) });
    const answers = [];
    const client = await connect(t, limpet.url, 'auto', { onAnswer: a => answers.push(a) });
    const owners = new Set();
    for (let i = 0; i < 30; i++) owners.add(text(await call(client, 'whoami')));
    assert.deepEqual([...owners].sort(), ['r1', 'r2', 'r3']);
    for (const answer of answers) assert.equal(answer.headers[SESSION], undefined);
    const session = await Session.open(limpet.url);
    assert.ok(session.id, 'and the other era has its sessions');
  });

  const asking = answers => ({ capabilities: { elicitation: {} }, onElicit: ({ params }) => {
    answers.push(params.message);
    return { action: 'accept', content: { answer: 'sesame' } };
  } });

  test('a question is answered at whichever replica has the key', async t => {
    const keys = path.join(folder(t), 'keys');
    const first = await replica(t, 'r1', ['--key-file', keys]);
    const others = await Promise.all(['r2', 'r3'].map(n => replica(t, n, ['--key-file', keys])));
    const limpet = await gateway(t, { replicas: [first, ...others].map(r => r.url) });
    const questions = [];
    const client = await connect(t, limpet.url, { pin: MODERN }, asking(questions));
    const finished = new Set();
    for (let i = 0; i < 20; i++) {
      const result = await call(client, 'ask', { question: `password ${i}?` });
      assert.equal(text(result), 'sesame');
      finished.add(result.structuredContent.replica);
    }
    assert.equal(questions.length, 20);
    assert.equal(questions[7], 'password 7?');
    assert.ok(finished.size > 1, 'more than one of them has gone on with a call');
  });

  test('without a common key the answer is refused elsewhere, and says why', async t => {
    const replicas = await three(t);
    const state = async url => {
      const answer = await send(url, modern('a', 'tools/call', { name: 'ask', arguments: {} },
        { meta: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } } }));
      assert.equal(answer.json.result.resultType, 'input_required', answer.text);
      return answer.json.result.requestState;
    };
    const again = (url, requestState) => send(url, modern('b', 'tools/call',
      { name: 'ask', arguments: {}, requestState,
        inputResponses: { q1: { action: 'accept', content: { answer: 'x' } } } },
      { meta: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } } }));
    const kept = await state(replicas[0].url);
    const elsewhere = await again(replicas[1].url, kept);
    assertRpcError(elsewhere, { status: 200, code: -32602, id: 'b' });
    assert.match(elsewhere.json.error.message, /all replicas need one key file/);
    assert.equal((await again(replicas[0].url, kept)).json.result.content[0].text, 'x');
  });

  test('a session is asked on its stream, as ever; who cannot be asked is told so', async t => {
    const { url } = await replica(t, 'r1');
    const questions = [];
    const client = await connect(t, url, 'legacy', asking(questions));
    assert.equal(text(await call(client, 'ask')), 'sesame');
    assert.deepEqual(questions, ['What shall I say?']);
    const mute = await send(url, modern('m', 'tools/call', { name: 'ask', arguments: {} }));
    assertRpcError(mute, { status: 400, code: -32021, id: 'm' });
  });

  test('there is something to listen to', async t => {
    const { url } = await replica(t, 'r1');
    const about = what => send(url, modern('n', 'tools/call',
      { name: 'notify', arguments: { about: what } }));
    const stream = await openEvents(url, modern('l', 'subscriptions/listen', { notifications:
      { toolsListChanged: true, resourceSubscriptions: ['replica://notified'] } }));
    await stream.events.message(m => m.method === 'notifications/subscriptions/acknowledged');
    for (const [what, method] of [['tools', 'notifications/tools/list_changed'],
      ['resource', 'notifications/resources/updated']]) {
      assert.equal((await about(what)).json.result.content[0].text, 'sent 1');
      await stream.events.message(m => m.method === method);
    }
    stream.close();
    const read = await send(url, modern('r', 'resources/read', { uri: 'replica://notified' }));
    assert.deepEqual(JSON.parse(read.json.result.contents[0].text), { replica: 'r1', count: 1 });
    assertRpcError(await about('weather'), { status: 200, code: -32602, id: 'n' });
  });

  test('slow and ask become tasks for a client that takes tasks', async t => {
    const { url } = await replica(t, 'r1');
    const meta = { 'io.modelcontextprotocol/clientCapabilities':
      { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } } };
    const begin = async (name, args) => (await send(url,
      modern('b', 'tools/call', { name, arguments: { ...args, task: true } }, { meta }))).json.result;
    const about = async (method, { taskId }, more) => (await send(url, modern('g', `tasks/${method}`,
      { taskId, ...more }, { meta, headers: { 'mcp-name': taskId } }))).json.result;
    const reached = async (task, status) => {
      for (;;) {
        const now = await about('get', task);
        if (now.status === status) return now;
        assert.equal(now.status, 'working');
        await sleep(20);
      }
    };
    const slow = await begin('slow', { ms: 50, steps: 2 });
    assert.equal(slow.resultType, 'task');
    assert.equal(text((await reached(slow, 'completed')).result), 'done in 2 steps');
    const ask = await begin('ask', { question: 'who?' });
    const [[key, question]] = Object.entries((await reached(ask, 'input_required')).inputRequests);
    assert.equal(question.params.message, 'who?');
    const { taskId } = ask;
    const stream = await openEvents(url, modern('l', 'subscriptions/listen',
      { notifications: { taskIds: [taskId, slow.taskId, 'none'] } }, { meta }));
    const granted = await stream.events.message(m => m.method.endsWith('/acknowledged'));
    assert.deepEqual(granted.params.notifications, { taskIds: [taskId, slow.taskId] });
    await about('update', ask,
      { inputResponses: { [key]: { action: 'accept', content: { answer: 'me' } } } });
    const told = await stream.events.message(m => m.params.status === 'completed');
    stream.close();
    assert.equal(told.method, 'notifications/tasks');
    const { _meta, ...whole } = told.params;
    assert.deepEqual(_meta, { 'io.modelcontextprotocol/subscriptionId': 'l' });
    const { resultType, _meta: server, ...asked } = await about('get', ask);
    assert.deepEqual(whole, asked);
    assert.equal(text((await reached(ask, 'completed')).result), 'me');
    const plain = await send(url, modern('p', 'tools/call', { name: 'slow',
      arguments: { ms: 1, steps: 1, task: true } }));
    assert.match(plain.text, /done in 1 steps/);
  });

  test('limpet inspect finds it; --era decides', async t => {
    const { url } = await replica(t, 'r1');
    const info = async flags => JSON.parse((await run(LIMPET,
      ['inspect', '--json', ...flags, url])).stdout);
    assert.equal((await info([])).protocolVersion, MODERN);
    assert.equal((await info(['--era', 'legacy'])).hasSession, true);
  });

  test('--era legacy and --era modern refuse the other one by its name', async t => {
    const old = await replica(t, 'old', ['--era', 'legacy']);
    assertRpcError(await send(old.url, modern('m', 'tools/list')),
      { status: 400, code: -32022, id: 'm' });
    const one = await replica(t, 'new', ['--era', 'modern']);
    const get = await send(one.url, { method: 'GET', headers: { accept: 'text/event-stream' } });
    assert.equal(get.status, 405);
    assert.equal(get.headers.allow, 'POST');
    const client = await connect(t, one.url, 'auto');
    assert.equal(text(await call(client, 'whoami')), 'new');
    const odd = await run(LIMPET, ['replica', '--era', 'bronze']);
    assert.equal(odd.code, 64);
    assert.match(odd.stderr, /say both, legacy or modern/);
  });
});
