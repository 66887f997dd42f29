// liblimpet-server as its README has it: the code there is compiled as C11 and as C++17, runs, and is
// called by the official client; and the other examples of servers.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { suite, test } from 'node:test';
import * as T from '@modelcontextprotocol/sdk/types.js';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { connect, until } from '../system/lib/flow.mjs';
import { send } from '../system/lib/http.mjs';
import { start } from '../system/lib/proc.mjs';
import { startRedis } from '../system/lib/redis.mjs';
import { assertLost, assertRpcError, initialize, MODERN, modern, post, POST_HEADERS, request, SESSION,
  toolCall } from '../system/lib/rpc.mjs';

const ROOT = path.resolve(import.meta.dirname, '../..');
const BUILD = path.resolve(process.env.LIMPET_BUILD ?? path.dirname(process.env.LIMPET));
const EXAMPLES = path.join(BUILD, 'doc/examples/server');
const STARTS = 20_000;

function readmeCode() {
  const blocks = readFileSync(path.join(ROOT, 'README.md'), 'utf8').matchAll(/^```c\n(.*?)^```$/gms);
  const [code] = [...blocks].map(block => block[1]).filter(text => text.includes('limpet-server.h'));
  return code;
}

function compile(t, code, [compiler, ...flags]) {
  const dir = mkdtempSync(path.join(tmpdir(), 'limpet-readme-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const source = path.join(dir, 'greeter.c');
  writeFileSync(source, code);
  const libraries = ['lib', 'libserver'].map(room => path.join(BUILD, 'src', room));
  execFileSync(compiler, [...flags, '-Wall', '-Wextra', '-Wpedantic', '-Werror',
    `-I${ROOT}/include`, source, '-x', 'none', '-o', path.join(dir, 'greeter'),
    ...libraries.flatMap(folder => [`-L${folder}`, `-Wl,-rpath,${folder}`]),
    '-llimpet-server', '-llimpet'], { stdio: 'pipe', encoding: 'utf8' });
  return path.join(dir, 'greeter');
}

async function serve(t, program, env = {}, more = []) {
  const proc = start(t, path.basename(program), program, ['127.0.0.1:0', ...more], { env });
  const [, url] = await proc.says(/listening on (http:\S+)\n/, STARTS);
  return { proc, url };
}

async function call(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  return { text: result.content[0].text, isError: result.isError ?? false };
}

suite('the 40 lines of the README', () => {
  test('are 40 lines', () => {
    assert.ok(readmeCode().trimEnd().split('\n').length <= 40);
  });

  for (const language of [['gcc', '-std=c11', '-x', 'c'], ['g++', '-std=c++17', '-x', 'c++']]) {
    test(`compile by ${language.join(' ')}, run, and are called by the official client`, async t => {
      const { proc, url } = await serve(t, compile(t, readmeCode(), language));
      const { client } = await connect(url);
      t.after(() => client.close());
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map(tool => tool.name), ['greet']);
      assert.deepEqual(await call(client, 'greet', { name: 'W\u00f6rld "2"' }),
        { text: 'Hello, W\u00f6rld "2"!', isError: false });
      for (const args of [{}, { name: 7 }, { name: 'x'.repeat(64) }]) {
        assert.equal((await call(client, 'greet', args)).isError, true);
      }
      await client.close();
      assert.equal((await proc.stop('SIGTERM', 15_000)).code, 0);
    });
  }

  test('clients of 2026-07-28 are served beside the others', async t => {
    const { url } = await serve(t, path.join(EXAMPLES, 'server-greeter'));
    const client = new Client({ name: 'limpet-test', version: '1' },
      { capabilities: {}, versionNegotiation: { mode: { pin: MODERN } } });
    t.after(() => client.close());
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    assert.equal((await call(client, 'greet', { name: 'you' })).text, 'Hello, you!');
    const { client: legacy } = await connect(url);
    t.after(() => legacy.close());
    assert.equal((await call(legacy, 'greet', { name: 'you' })).text, 'Hello, you!');
  });

  test('a question of 2026-07-28 is answered at whichever process has the key', async t => {
    const KEYS = `${randomBytes(32).toString('base64')}\n`;
    const program = path.join(BUILD, 'test/interop/conf-library');
    const [first, second] = await Promise.all(
      ['a', 'b'].map(name => serve(t, program, { KEYS }, [name])));
    const asked = (url, id, more = {}) => send(url, modern(id, 'tools/call',
      { name: 'test_elicitation', arguments: { message: 'who?' }, ...more },
      { meta: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } } }));
    const { resultType, inputRequests, requestState } = (await asked(first.url, 'x')).json.result;
    assert.equal(resultType, 'input_required');
    const [[key, question]] = Object.entries(inputRequests);
    assert.equal(question.params.message, 'who?');
    const inputResponses = { [key]: { action: 'accept', content: { username: 'u' } } };
    const answer = await asked(second.url, 'y', { requestState, inputResponses });
    assert.match(answer.json.result.content[0].text, /action=accept, content=\{"username":"u"\}/);
  });

  test('an address that cannot be is told, and the exit status is 1', async t => {
    const proc = start(t, 'greeter', path.join(EXAMPLES, 'server-greeter'), ['nowhere']);
    assert.equal((await proc.ended).code, 1);
    assert.match(proc.stderr, /must be host:port/);
    const { url } = await serve(t, path.join(EXAMPLES, 'server-greeter'));
    const second = start(t, 'second', path.join(EXAMPLES, 'server-greeter'), [new URL(url).host]);
    assert.equal((await second.ended).code, 1);
    assert.match(second.stderr, /in use/);
  });

  test('FLY_MACHINE_ID and LIMPET_ALLOWED_ORIGINS of the environment are taken', async t => {
    const { url } = await serve(t, path.join(EXAMPLES, 'server-greeter'),
      { FLY_MACHINE_ID: 'f9', LIMPET_ALLOWED_ORIGINS: 'https://app.example' });
    const { client, transport } = await connect(url);
    t.after(() => client.close());
    assert.match(transport.sessionId, /^f9\./);
    const refused = await fetch(url, { method: 'POST', headers: { origin: 'https://evil.example' } });
    assert.equal(refused.status, 403);
  });
});

suite('other examples', () => {
  test('thread.c: calls that work in threads, many at a time, are answered when they are done', async t => {
    const { url } = await serve(t, path.join(EXAMPLES, 'server-thread'));
    const { client } = await connect(url);
    t.after(() => client.close());
    const numbers = [4, 9, 25, 49, 1_000_003, 15_485_863, 97, 2];
    const answers = await Promise.all(
      numbers.map(number => call(client, 'smallest_factor', { number })));
    assert.deepEqual(answers.map(answer => answer.text),
      ['2', '3', '5', '7', '1000003', '15485863', '97', '2']);
    assert.equal((await call(client, 'smallest_factor', { number: 1 })).isError, true);
  });

  for (const sse of [false, true]) {
    const transport = sse ? 'HTTP+SSE' : 'Streamable HTTP';
    test(`notes.c by ${transport}: template, subscription, prompt, completion`, async t => {
      const { url } = await serve(t, path.join(EXAMPLES, 'server-notes'));
      const { client, seen } = await connect(sse ? new URL('/sse', url) : url, { sse });
      t.after(() => client.close());
      const updates = [];
      client.setNotificationHandler(T.ResourceUpdatedNotificationSchema,
        message => { updates.push(message.params.uri); });
      await until(() => seen.streams > 0, 10_000, 'the GET stream');
      const { resourceTemplates: [template] } = await client.listResourceTemplates();
      assert.equal(template.uriTemplate, 'note://{number}');
      await assert.rejects(client.readResource({ uri: 'note://3' }), { code: -32002 });
      await client.subscribeResource({ uri: 'note://3' });
      assert.equal((await call(client, 'write_note', { number: 3, text: 'a "b"\n' })).text, 'note://3');
      const { contents: [note] } = await client.readResource({ uri: 'note://3' });
      assert.equal(note.text, 'a "b"\n');
      await until(() => updates.length === 1, 10_000, 'the update');
      assert.deepEqual(updates, ['note://3']);
      const { messages } = await client.getPrompt({ name: 'summarize' });
      assert.equal(messages[0].role, 'user');
      const { completion } = await client.complete({
        ref: { type: 'ref/prompt', name: 'summarize' }, argument: { name: 'length', value: '' } });
      assert.deepEqual(completion.values, ['short', 'long']);
    });
  }
});

// poll.c: a program with a loop and connections of its own.
test('on the loop of its program: sessions of the official client; a graceful stop', async t => {
  const { proc, url } = await serve(t, path.join(EXAMPLES, 'server-poll'));
  await Promise.all(Array.from({ length: 5 }, async () => {
    const { client, seen } = await connect(url);
    t.after(() => client.close());
    assert.equal((await call(client, 'greet', {})).text, 'Hello from a loop of poll');
    await until(() => seen.streams > 0, 10_000, 'the GET stream');
  }));
  assert.equal((await proc.stop('SIGTERM', 15_000)).code, 0);
});

// host.c: a program of libmicrohttpd under whose /mcp the server is.
suite('mounted in a host program [S4]', () => {
  const host = (t, env) => serve(t, path.join(EXAMPLES, 'server-host'), env);

  test('the official client: sessions, a stream with progress, DELETE; a graceful stop', async t => {
    const { proc, url } = await host(t);
    assert.match((await send(new URL('/', url), {})).text, /own page/);
    const clients = await Promise.all(Array.from({ length: 5 }, () => connect(url)));
    for (const { client } of clients) t.after(() => client.close());
    await Promise.all(clients.map(async ({ client, transport, seen }) => {
      const options = { onprogress: () => { seen.progress++; } };
      const result = await client.callTool({ name: 'greet', arguments: {} }, undefined, options);
      assert.equal(result.content[0].text, 'Hello from below /mcp');
      assert.equal(seen.progress, 1);
      await until(() => seen.streams > 0, 10_000, 'the GET stream');
      await transport.terminateSession();
      await assert.rejects(client.listTools());
    }));
    const { client } = await connect(url);
    t.after(() => client.close());
    assert.equal((await proc.stop('SIGTERM', 15_000)).code, 0);
  });

  test('a session has one GET stream', async t => {
    const { url } = await host(t);
    const opened = await post(url, initialize());
    const stream = new AbortController();
    const headers = { accept: 'text/event-stream', [SESSION]: opened.headers[SESSION] };
    const open = () => fetch(url, { headers, signal: stream.signal });
    assert.equal((await open()).status, 200);
    assert.equal((await open()).status, 409);
    stream.abort();
  });
});

const UUID = '01234567-89ab-4def-8123-456789abcdef';
const REQUESTS = {
  POST: id => ({ method: 'POST', body: request('x', 'tools/list'),
    headers: { ...POST_HEADERS, ...(id !== undefined && { [SESSION]: id }) } }),
  GET: id => ({ method: 'GET', headers: { accept: 'text/event-stream',
    ...(id !== undefined && { [SESSION]: id }) } }),
  DELETE: id => ({ method: 'DELETE', headers: { ...(id !== undefined && { [SESSION]: id }) } }),
};
const ask = (url, method, id, extra) => {
  const asked = REQUESTS[method](id);
  return send(url, { ...asked, headers: { ...asked.headers, ...extra } });
};

// Each way in: the library's own loop, its program's connections, its program's requests.
const ENTRIES = { 'its own loop': 'server-notes', 'connections of its program': 'server-poll',
  'a host program': 'server-host' };

suite('the owner-id table [S3] [S4]', () => {
  for (const [entry, program] of Object.entries(ENTRIES)) {
    for (const method of Object.keys(REQUESTS)) {
      test(`${method} on ${entry}`, async t => {
        const run = env => serve(t, path.join(EXAMPLES, program), env);
        const { url } = await run({ FLY_MACHINE_ID: 'm1' });
        const assertHere404 = answer => {
          assertLost(answer, method === 'POST' ? 'x' : null);
          assert.equal(answer.headers['fly-replay'], undefined);
          assert.ok(!answer.text.includes('m2'), 'nothing is echoed');
        };
        for (const extra of [{}, { 'limpet-hop': 'v1.forged' }]) {
          const answer = await ask(url, method, `m2.${UUID}`, extra);
          assert.equal(answer.status, 204);
          assert.equal(answer.headers['fly-replay'], 'prefer_instance=m2;timeout=5s');
        }
        for (const id of [`m1.${UUID}`, UUID, 'm2;x=y', `${'m'.repeat(33)}.1`, '.', '', 'm2.',
          `.${UUID}`, 'm\u00e9.1']) {
          assertHere404(await ask(url, method, id));
        }
        for (const mark of [{ 'fly-replay-src': 'instance=m3;t=1' },
          { 'fly-replay-failed': 'instance=m2' }]) {
          assertHere404(await ask(url, method, `m2.${UUID}`, mark));
        }
        assertRpcError(await ask(url, method, undefined),
          { status: 400, code: -32000, id: method === 'POST' ? 'x' : null });
        const plain = await run({ FLY_MACHINE_ID: '' });
        assertHere404(await ask(plain.url, method, `m2.${UUID}`));
      });
    }
  }
});

// The library's own loop, and one on the loop of its program, with one store.
suite('shared sessions [L3]', () => {
  const servers = (t, url) => Promise.all(['counter', 'counter', 'poll'].map(
    name => serve(t, path.join(EXAMPLES, `server-${name}`), { STORE_URL: url })));
  const asked = (url, id, name) => send(url, { method: 'POST',
    body: toolCall(1, name), headers: { ...POST_HEADERS, [SESSION]: id } });
  const textOf = answer => answer.json.result.content[0].text;

  test('any of them serves any session, and counts that come at once lose none', async t => {
    const redis = await startRedis(t);
    const all = await servers(t, redis.url);
    const urls = all.map(server => server.url);
    for (const opener of urls) {
      const id = (await post(opener, initialize())).headers[SESSION];
      assert.equal(textOf(await asked(urls[2], id, 'greet')), 'Hello from a loop of poll');
      const counts = await Promise.all(Array.from({ length: 12 },
        (_, i) => asked(urls[i % 2], id, 'count')));
      assert.deepEqual(counts.map(textOf).map(Number).sort((a, b) => a - b),
        Array.from({ length: 12 }, (_, i) => i + 1));
    }
    await Promise.all(all.map(async ({ proc }) =>
      assert.equal((await proc.stop('SIGTERM', 15_000)).code, 0)));
  });

  test('a store that is away is 503, and said; back, the session goes on', async t => {
    const redis = await startRedis(t);
    const [first, , polled] = await servers(t, redis.url);
    const id = (await post(first.url, initialize())).headers[SESSION];
    assert.equal(textOf(await asked(first.url, id, 'count')), '1');
    await redis.kill();
    assert.equal((await asked(polled.url, id, 'greet')).status, 503);
    await redis.start();
    let answer;
    await until(async () => (answer = await asked(polled.url, id, 'greet')).status === 200, 20_000,
      'the session');
    assert.equal(textOf(answer), 'Hello from a loop of poll');
    await first.proc.says(/store/i, 10_000);
  });

  test('a store whose URL cannot be is told', async t => {
    const proc = start(t, 'counter', path.join(EXAMPLES, 'server-counter'), ['127.0.0.1:0'],
      { env: { STORE_URL: 'http://127.0.0.1' } });
    assert.equal((await proc.ended).code, 1);
    assert.match(proc.stderr, /redis:/);
  });
});
