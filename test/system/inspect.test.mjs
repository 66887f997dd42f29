// `limpet inspect` against real servers of every transport and era, and against peers that misbehave:
// results on standard output, everything else on standard error, each failure a sentence that says
// what to do ([C10], cases RET, RES, VER, AUT, STA as far as they are the client's).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import path from 'node:path';
import { suite, test } from 'node:test';
import { folder } from './lib/gateway.mjs';
import { inspect } from './lib/inspect.mjs';
import { freePort } from './lib/ports.mjs';
import { LIMPET, start, sleep } from './lib/proc.mjs';
import { INFO, played } from './lib/played.mjs';
import { chunk, rawAnswer, rawPeer } from './lib/raw.mjs';
import { conf, everything, everythingSse, modernOnly, oldSse } from './lib/replicas.mjs';
import { send } from './lib/http.mjs';
import { tiny } from './lib/tiny.mjs';

const names = result => result.json.tools.map(tool => tool.name);

function ok(result) {
  assert.equal(result.code, 0, result.stderr + result.stdout);
  return result;
}

suite('what a server offers', () => {
  test('the reference server over Streamable HTTP', async t => {
    const [{ url }] = await everything(t, 1);
    const info = ok(await inspect(['--json', url])).json;
    assert.equal(info.era, 'legacy');
    assert.equal(info.transport, 'streamable-http');
    assert.equal(info.protocolVersion, '2025-11-25');
    assert.equal(info.hasSession, true);
    assert.ok(names(ok(await inspect(['--json', url, 'tools']))).includes('echo'));
    assert.match(ok(await inspect([url, 'tools'])).stdout, /^echo {2,}Echoes back/m);
    assert.equal(ok(await inspect([url, 'call', 'echo', '{"message":"hi"}'])).stdout, 'Echo: hi\n');
    const resources = ok(await inspect(['--json', url, 'resources'])).json.resources;
    const read = ok(await inspect([url, 'read', resources[0].uri]));
    assert.ok(read.stdout.length > 10);
    assert.match(ok(await inspect([url, 'templates'])).stdout, /^demo:\/\/resource\/dynamic\/text/m);
    assert.match(ok(await inspect([url, 'prompts'])).stdout, /^simple-prompt/m);
    assert.match(ok(await inspect([url, 'prompt', 'args-prompt', '{"city":"Oslo"}'])).stdout,
      /^user: .*Oslo/m);
    assert.equal(ok(await inspect([url, 'ping'])).stdout, '{}\n');
    assert.ok(names(ok(await inspect([url, 'request', 'tools/list', '{}']))).length > 5);
  });

  test('progress is told while a call runs', async t => {
    const [{ url }] = await everything(t, 1);
    const result = ok(await inspect(
      [url, 'call', 'trigger-long-running-operation', '{"duration":0.4,"steps":2}']));
    assert.match(result.stdout, /^Long running operation completed/);
    assert.match(result.stderr, /progress 1\/2/);
    assert.match(result.stderr, /progress 2\/2/);
  });

  test('old SSE, asked for and found out', async t => {
    const [everyOne] = await everythingSse(t, 1);
    const url = everyOne.url.replace('/mcp', '/sse');
    const info = ok(await inspect(['--json', url])).json;
    assert.equal(info.transport, 'sse');
    assert.equal(ok(await inspect([url, 'call', 'echo', '{"message":"old"}'])).stdout, 'Echo: old\n');
    const [own] = await oldSse(t, 1);
    const asked = ['--transport', 'sse', own.url.replace('/mcp', '/sse')];
    assert.equal(ok(await inspect([...asked, 'call', 'whoami'])).stdout, `${own.name}\n`);
    const gets = (await own.seen()).filter(row => row.http === 'GET');
    assert.equal(gets.length, 1, 'asked for: no POST first');
  });

  test('an endpoint of another origin gets nothing (old SSE)', async t => {
    const [own] = await oldSse(t, 1, { ENDPOINT: 'http://127.0.0.2:{port}/messages?sessionId={id}' });
    const result = await inspect(['--transport', 'sse', own.url.replace('/mcp', '/sse'), 'tools']);
    assert.equal(result.code, 1);
    assert.match(result.stderr, /endpoint of another origin \(127\.0\.0\.2\), where nothing is sent/);
    assert.equal((await own.seen()).filter(row => row.http === 'POST').length, 0);
  });

  test('a modern-only server, its fields stamped', async t => {
    const [one] = await modernOnly(t, 1);
    const info = ok(await inspect(['--json', one.url])).json;
    assert.equal(info.era, 'modern');
    assert.equal(info.protocolVersion, '2026-07-28');
    assert.equal(info.hasSession, false);
    assert.equal(ok(await inspect([one.url, 'call', 'échø'])).stdout, `${one.name}\n`);
    const seen = (await one.seen()).at(-1);
    assert.equal(seen.headers['mcp-name'], '=?base64?w6ljaMO4?=');
    assert.equal(seen.headers['mcp-session-id'], undefined);
  });

  test('an argument that is mirrored: in one session after a list, by asking again without', async t => {
    const [one] = await modernOnly(t, 1);
    ok(await inspect([one.url, 'call', 'shop', '{"sku":"A7"}']));
    const after = ok(await inspect(['-i', one.url], { input: 'tools\ncall shop {"sku":"B8"}\n' }));
    assert.match(after.stdout, new RegExp(`^${one.name}$`, 'm'));
    assert.equal((await one.seen()).at(-1).headers['mcp-param-sku'], 'B8');
  });

  test('limpet replica, and through a gateway\'s old SSE', async t => {
    const port = await freePort();
    const replica = start(t, 'replica', LIMPET,
      ['replica', '--listen', `127.0.0.1:${port}`, '--name', 'A']);
    await replica.listening(port);
    const url = `http://127.0.0.1:${port}/mcp`;
    assert.deepEqual(names(ok(await inspect(['--json', url, 'tools']))),
      ['echo', 'whoami', 'counter', 'slow', 'notify', 'ask']);
    assert.equal((await inspect([url, 'ping'])).code, 0, 'which 2026-07-28 does not have');
    // What a first call makes the server say is not missed.
    for (let i = 0; i < 5; i++) {
      const told = ok(await inspect(['--era', 'legacy', url, 'call', 'notify']));
      assert.match(told.stdout, /^sent 1$/m);
      assert.match(told.stderr, /^notifications\//m);
    }
    // Nothing of the session stays behind.
    const status = ok(await inspect(['-i', '--era', 'legacy', url],
      { input: 'call counter\ncall counter\n' }));
    assert.match(status.stdout, /^2$/m);
  });

  test('what is no text, a server without sessions, and its instructions', async t => {
    const [{ url }] = await everything(t, 1);
    assert.match(ok(await inspect([url, 'call', 'get-tiny-image'])).stdout,
      /^\[image image\/png .*\d+ bytes of base64\]$/m);
    const server = await played(t, (method, message, { response }) => {
      if (method === 'initialize') {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(
          { jsonrpc: '2.0', id: message.id, result: { ...INFO, instructions: 'be kind' } }));
      }
      if (method === 'resources/read') return { contents: [{ uri: 'x', mimeType: 'a/b', blob: 'AAAA' }] };
      if (method === 'tools/call') return { structuredContent: { a: 1 } };
      return undefined;
    });
    const info = ok(await inspect([server.url])).stdout;
    assert.match(info, /^session +none$/m);
    assert.match(info, /^instructions be kind$/m);
    assert.match(ok(await inspect([server.url, 'read', 'x'])).stdout, /a\/b x 4 bytes of base64/);
    assert.equal(ok(await inspect([server.url, 'call', 'x'])).stdout, '{"a":1}\n');
  });

  test('a list of several pages is one list', async t => {
    const server = await played(t, (method, { params } = {}) => {
      if (method !== 'tools/list') return undefined;
      const page = Number(params?.cursor ?? 0);
      return { tools: [{ name: `t${page}` }], ...(page < 3 && { nextCursor: String(page + 1) }) };
    });
    assert.deepEqual(names(ok(await inspect(['--json', server.url, 'tools']))), ['t0', 't1', 't2', 't3']);
    assert.equal(ok(await inspect([server.url, 'tools'])).stdout, 't0\nt1\nt2\nt3\n');
  });
});

suite('what the server asks', () => {
  const file = (t, answers) => {
    const name = path.join(folder(t), 'answers.json');
    writeFileSync(name, typeof answers === 'string' ? answers : JSON.stringify(answers));
    return name;
  };

  test('answers from a file', async t => {
    const [{ url }] = await everything(t, 1);
    const answer = file(t, { 'elicitation/create': { name: 'Ada' },
      'sampling/createMessage': { role: 'assistant', model: 'm',
        content: { type: 'text', text: 'sampled' } },
      'roots/list': { roots: [{ uri: 'file:///r', name: 'root' }] } });
    const elicited = ok(await inspect(['--answer', answer, url, 'call', 'trigger-elicitation-request']));
    assert.match(elicited.stdout, /- Name: Ada/);
    assert.match(elicited.stderr, /elicitation\/create was answered from --answer/);
    const sampled = ok(await inspect(
      ['--answer', answer, url, 'call', 'trigger-sampling-request', '{"prompt":"p","maxTokens":5}']));
    assert.match(sampled.stdout, /"text": "sampled"/);
  });

  test('answers in turn, and declining', async t => {
    const [{ url }] = await conf(t, 1);
    const answer = file(t, { 'elicitation/create': [{ username: 'u', email: 'e' }, { action: 'decline' }] });
    const input = 'call test_elicitation {"message":"m"}\ncall test_elicitation {"message":"m"}\n';
    const both = ok(await inspect(['-i', '--answer', answer, url], { input }));
    assert.match(both.stdout, /accept/);
    assert.match(both.stdout, /decline/);
  });

  test('answers typed, field by field', async t => {
    const [{ url }] = await conf(t, 1);
    const typed = ok(await inspect(['-i', url], { input:
      'call test_elicitation {"message":"Who?"}\nada\nada@x\ncall test_sampling {"prompt":"p"}\nmine\n' }));
    assert.match(typed.stderr, /The server asks: Who\?/);
    assert.match(typed.stdout, /accept/);
    assert.match(typed.stdout, /ada@x/);
    assert.match(typed.stderr, /The server wants a model's reply/);
    assert.match(typed.stdout, /mine/);
    const refused = ok(await inspect(['-i', url],
      { input: 'call test_elicitation {"message":"Who?"}\n:cancel\n' }));
    assert.match(refused.stdout, /cancel/);
  });

  // A server that asks once in a call, on the call's own stream, and tells what it was answered.
  const asking = (t, method, params, { withdraws = false } = {}) => played(t, (name, message, exchange) => {
    const { response } = exchange;
    if (message?.id === 'q' && message.method === undefined) {
      const got = JSON.stringify(message.result ?? message.error);
      stream.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: call,
        result: { content: [{ type: 'text', text: got }] } })}\n\n`);
      stream.end();
      return response.writeHead(202).end() && undefined;
    }
    if (name !== 'tools/call') return undefined;
    stream = response.writeHead(200, { 'content-type': 'text/event-stream' });
    call = message.id;
    stream.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 'q', method, params })}\n\n`);
    if (withdraws) {
      setTimeout(() => stream.end(`data: ${JSON.stringify({ jsonrpc: '2.0',
        method: 'notifications/cancelled', params: { requestId: 'q' } })}\n\ndata: ${JSON.stringify({
        jsonrpc: '2.0', id: call, result: { content: [{ type: 'text', text: 'withdrawn' }] } })}\n\n`), 50);
    }
    return undefined;
  });
  let stream;
  let call;
  const FORM = { message: 'Order', requestedSchema: { type: 'object', required: ['n', 'size'], properties: {
    n: { type: 'integer', description: 'how many' }, size: { type: 'string', enum: ['S', 'L'] },
    fast: { type: 'boolean', default: true }, price: { type: 'number' }, tags: { type: 'array' },
    note: { type: 'string' } } } };

  for (const [what, typed, answered, seen = /(?:)/] of [
    ['every type', '3\nL\nno\n1.5\n["a"]\nhi "you"\n',
      { n: 3, size: 'L', fast: false, price: 1.5, tags: ['a'], note: 'hi "you"' },
      /^ {2}n \(integer, required\) how many: /m],
    ['defaults and what is left out', '3\r\nS\r\n\n\n\n\n', { n: 3, size: 'S', fast: true }],
    ['what does not fit is asked again', '\nthree\n3\nM\nS\nmaybe\nYES\nx\n\n{}\n\n\n',
      { n: 3, size: 'S', fast: true }, /that does not fit; once more/],
  ]) {
    test(`a form: ${what}`, async t => {
      const server = await asking(t, 'elicitation/create', FORM);
      const result = ok(await inspect(['-i', server.url], { input: `call x\n${typed}` }));
      assert.deepEqual(JSON.parse(result.stdout), { action: 'accept', content: answered });
      assert.match(result.stderr, seen);
    });
  }

  for (const [what, method, params, typed, answered] of [
    ['declined', 'elicitation/create', FORM, ':decline\n', { action: 'decline' }],
    ['the input ends', 'elicitation/create', FORM, '3\n', { action: 'cancel' }],
    ['an empty form', 'elicitation/create', { message: 'Sure?' }, 'y\n', { action: 'accept', content: {} }],
    ['an empty form, refused', 'elicitation/create', { message: 'Sure?' }, 'no\n', { action: 'decline' }],
    ['an address, agreed', 'elicitation/create', { mode: 'url', message: 'm', url: 'https://a.example/' },
      'y\n', { action: 'accept' }],
    ['an address, not agreed', 'elicitation/create', { mode: 'url', message: 'm', url: 'https://a.example/' },
      'n\n', { action: 'decline' }],
    ['sampling refused', 'sampling/createMessage', { messages: [{ role: 'user',
      content: { type: 'text', text: 'hi' } }] }, ':decline\n',
    { code: -1, message: 'User rejected sampling request' }],
    ['a method that nobody has', 'no/such', {}, '', { code: -32601, message: 'Method not found' }],
  ]) {
    test(`a question: ${what}`, async t => {
      const server = await asking(t, method, params);
      const result = ok(await inspect(['-i', server.url], { input: `call x\n${typed}` }));
      assert.deepEqual(JSON.parse(result.stdout), answered);
    });
  }

  test('a question: nobody is there to answer', async t => {
    const server = await asking(t, 'elicitation/create', FORM);
    const result = ok(await inspect([server.url, 'call', 'x']));
    assert.deepEqual(JSON.parse(result.stdout), { action: 'decline' });
    assert.match(result.stderr, /there is no answer: write one into a file and name it with --answer/);
  });

  test('a question that the server withdraws', async t => {
    const server = await asking(t, 'elicitation/create', FORM, { withdraws: true });
    const child = start(t, 'inspect', 'sh',
      ['-c', `(echo 'call x'; sleep 3) | "${LIMPET}" inspect -i ${server.url}`]);
    await child.says(/the server does not want the answer any more/, 8000);
    await child.says(/withdrawn/);
  });

  test('without a terminal and an answer, nothing is offered', async t => {
    const [{ url }] = await everything(t, 1);
    const listed = names(ok(await inspect(['--json', url, 'tools'])));
    assert.ok(!listed.includes('trigger-elicitation-request'), 'the capability was not declared');
  });

  for (const [what, text] of [['none', undefined], ['no JSON', 'x'], ['no object', '[1]']]) {
    test(`an answer file that is ${what}`, async t => {
      const name = text === undefined ? path.join(folder(t), 'none.json') : file(t, text);
      const result = await inspect(['--answer', name, 'http://127.0.0.1:1/mcp', 'tools']);
      assert.equal(result.code, 64);
      assert.match(result.stderr, /--answer: /);
    });
  }

  test('an answer file with a method that no server asks', async t => {
    const name = file(t, { 'roots/list': { roots: [] }, 'elicitation': { name: 'Ada' } });
    const result = await inspect(['--answer', name, 'http://127.0.0.1:1/mcp', 'tools']);
    assert.equal(result.code, 64);
    assert.match(result.stderr, /has an answer for "elicitation", which no server asks; the methods are/);
  });
});

suite('what goes wrong', () => {
  const failure = async (args, pattern, options) => {
    const result = await inspect(args, options);
    assert.equal(result.code, 1, result.stdout + result.stderr);
    assert.match(result.stderr, pattern);
    return result;
  };

  test('an error of the server, and a tool that failed', async t => {
    const [{ url }] = await conf(t, 1);
    await failure([url, 'request', 'no/such', '{}'], /answers with the error -32601: /);
    const asJson = await failure(['--json', url, 'request', 'no/such'], /-32601/);
    assert.equal(asJson.json.error.code, -32601);
    const failed = await failure([url, 'call', 'test_error_handling'], /the tool says that it failed/);
    assert.ok(failed.stdout.length > 1);
  });

  test('a list without elements is said to be one', async t => {
    const server = await played(t, method => method === 'tools/list' ? { tools: [] } : undefined);
    const result = await inspect([server.url, 'tools']);
    assert.equal(result.stdout, '');
    assert.match(result.stderr, /^no tools$/m);
  });

  test('status and body as received', async t => {
    const server = await played(t, (method, message, { response }) => {
      if (method === 'tools/list') response.writeHead(500).end('the disk is "full"');
    });
    const result = await failure(['--json', server.url, 'tools'],
      /^limpet: Error POSTing to endpoint \(HTTP 500\): the disk is "full"$/m);
    assert.deepEqual(result.json.failure, { status: 500, body: 'the disk is "full"',
      message: 'Error POSTing to endpoint (HTTP 500): the disk is "full"' });
  });

  test('of a page that a proxy sends, a person sees the beginning, a script all', async t => {
    const page = `<html>${'é'.repeat(2000)}</html>`;
    const server = await played(t, (method, message, { response }) => {
      if (method === 'tools/list') response.writeHead(502).end(page);
    });
    const brief = await failure([server.url, 'tools'],
      /endpoint \(HTTP 502\): <html>é+\.\.\. \(\d+ bytes more; --json prints all\)$/m);
    assert.ok(brief.stderr.length < 400, brief.stderr);
    const all = await failure(['--json', server.url, 'tools'], /\(\d+ bytes more\)$/m);
    assert.equal(all.json.failure.body, page);
  });

  test('nobody there, no such host, no such path', async t => {
    const port = await freePort();
    await failure([`http://127.0.0.1:${port}/mcp`, 'tools'], /connection was refused; is the server running/);
    await failure(['http://no-such-host.invalid/mcp', 'tools'], /there is no host of that name/);
    const [{ port: there }] = await conf(t, 1);
    await failure([`http://127.0.0.1:${there}/elsewhere`, 'tools'],
      /Error POSTing to endpoint \(HTTP 404\)/);
    await failure([`http://127.0.0.1:${there}`, 'tools'],
      /the URL has no path; most servers have their endpoint at \/mcp: http:\/\/127\.0\.0\.1:\d+\/mcp$/m);
  });

  test('a peer that speaks something else', async t => {
    const peer = await rawPeer(t, async connection => {
      await connection.send('220 mail.example ESMTP\r\n\r\n');
    });
    await failure([peer.url, 'tools'], /does not speak HTTP/);
    const web = await rawPeer(t, connection => connection.send(
      rawAnswer(200, { 'Content-Type': 'text/html' }, '<html>hello</html>')));
    await failure([web.url, 'tools'], /text\/html with something that is no MCP message; is the URL/);
  });

  test('control characters of a server do not reach the terminal', async t => {
    const server = await played(t, (method, message, { response }) => {
      if (method === 'tools/call') response.writeHead(500).end('\x1b]0;owned\x07');
      if (method === 'tools/list') return { tools: [{ name: '\x1b[31mred' }] };
      return undefined;
    });
    const result = await failure([server.url, 'call', 'x'], /HTTP 500\): \?\]0;owned\?/);
    assert.ok(!result.stderr.includes('\x1b'));
    assert.equal(ok(await inspect([server.url, 'tools'])).stdout, '?[31mred\n');
  });

  test('RET-03 a slow call ends alone', async t => {
    const server = await played(t, method => {
      if (method === 'tools/call') return new Promise(() => {});
      return method === 'ping' ? {} : undefined;
    });
    const result = await failure(['-i', '--timeout', '1', server.url],
      /tools\/call: no answer within 1\.0 s; give the server longer with --timeout/,
      { input: 'call slow\nping\n' });
    assert.match(result.stdout, /^\{\}$/m);
    const methods = server.seen.map(row => row.message?.method).filter(Boolean);
    assert.equal(methods.filter(m => m === 'initialize').length, 1);
    assert.ok(methods.includes('notifications/cancelled'));
  });

  test('RET-01 a call whose connection breaks is not sent again', async t => {
    let ran = 0;
    const server = await played(t, (method, message, { response }) => {
      if (method !== 'tools/call') return;
      ran++;
      response.destroy();
    });
    await failure([server.url, 'call', 'pay'], /whether the request was carried out is not known/);
    assert.equal(ran, 1);
  });

  test('a stream that is cut in its middle, with nothing to resume from', async t => {
    let ran = 0;
    const server = await played(t, (method, message, { response }) => {
      if (method !== 'tools/call') return;
      ran++;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: {"jsonrpc":"2.0","method":"notifications/mess');
      setTimeout(() => response.destroy(), 50);
    });
    await failure([server.url, 'call', 'pay'], /tools\/call: the stream ended before the answer came/);
    assert.equal(ran, 1);
  });

  test('STA-12 an error with a made-up id ends the call', async t => {
    const server = await played(t, (method, message, { response }) => {
      if (method === 'tools/list') {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(
          { jsonrpc: '2.0', id: 'server-error', error: { code: -32600, message: 'made up' } }));
      }
    });
    await failure([server.url, 'tools'], /-32600: made up/);
  });

  test('VER-02 the version that was agreed is sent from then on', async t => {
    const server = await played(t, (method, message, { request, response }) => {
      if (method === 'server/discover') return response.writeHead(400).end() && undefined;
      if (method === 'initialize') {
        assert.equal(request.headers['mcp-protocol-version'], undefined);
        response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's1' })
          .end(JSON.stringify({ jsonrpc: '2.0', id: message.id,
            result: { ...INFO, protocolVersion: '2025-03-26' } }));
      } else if (request.headers['mcp-protocol-version'] !== '2025-03-26') {
        response.writeHead(400).end('wrong version');
      } else if (method === 'tools/list') return { tools: [] };
      return undefined;
    });
    ok(await inspect([server.url, 'tools']));
    const later = server.seen.slice(2);
    assert.ok(later.length >= 3);
    for (const row of later) assert.equal(row.headers['mcp-session-id'], 's1');
    assert.equal(later.filter(row => row.http === 'DELETE').length, 1);
  });

  test('AUT a server that wants a login says where', async t => {
    let resource;
    const server = await played(t, (method, message, { request, response }) => {
      if (request.url.startsWith('/.well-known/oauth-protected-resource')) {
        assert.equal(request.headers.authorization, undefined);
        assert.equal(request.headers.cookie, undefined);
        response.writeHead(request.url.endsWith('/mcp') ? 200 : 404).end(JSON.stringify(
          { resource: resource ?? `http://${request.headers.host}/mcp`,
            authorization_servers: ['https://login.example/t1'] }));
      } else if (request.headers.authorization !== 'Bearer good') {
        response.writeHead(401, { 'www-authenticate': 'Bearer', 'set-cookie': 'a=b' }).end('who?');
      } else if (method === 'tools/list') return { tools: [] };
      return undefined;
    });
    await failure([server.url, 'tools'],
      /asks for a login \(HTTP 401\)\. Log in at https:\/\/login\.example\/t1 and give the token/);
    await failure(['--cookie-jar', '--bearer', 'bad', server.url, 'tools'], /does not accept this token/);
    ok(await inspect(['--bearer', 'good', server.url, 'tools']));
    ok(await inspect([server.url, 'tools'], { env: { LIMPET_BEARER: 'good' } }));
    const token = path.join(folder(t), 'token');
    writeFileSync(token, 'good\n');
    ok(await inspect(['--bearer', `@${token}`, server.url, 'tools']));
    resource = 'https://mcp.example/mcp'; // RFC 9728 3.3: what is told of another one is not used
    const refused = await failure([server.url, 'tools'], /It does not say where to log in/);
    assert.match(refused.stderr, /for the resource "https:\/\/mcp\.example\/mcp" and not for http:/);
    assert.doesNotMatch(refused.stderr, /login\.example/);
  });

  test('a redirect to another origin is not followed', async t => {
    const other = await tiny(t);
    const server = await played(t, (method, message, { request, response }) => {
      if (request.url === '/mcp') response.writeHead(307, { location: other.url }).end();
      else if (request.url === '/near') response.writeHead(308, { location: '/far' }).end();
      else if (method === 'tools/list') return { tools: [] };
      return undefined;
    });
    await failure(['--bearer', 'tok', server.url, 'tools'], /points to .*another origin/);
    assert.equal(other.requests.length, 0);
    ok(await inspect([server.url.replace('/mcp', '/near'), 'tools']));
  });

  for (const [args, pattern] of [
    [[], /name a server/],
    [['http://127.0.0.1:1/mcp', 'dance'], /there is no such command/],
    [['http://127.0.0.1:1/mcp', 'call'], /needs a name/],
    [['http://127.0.0.1:1/mcp', 'tools', 'x'], /a word too many/],
    [['http://127.0.0.1:1/mcp', 'read', 'x', '{}'], /a word too many/],
    [['http://127.0.0.1:1/mcp', 'call', 'x', '[1]'], /no JSON object/],
    [['-i', 'http://127.0.0.1:1/mcp', 'tools'], /with -i/],
    [['--nonsense', 'http://127.0.0.1:1/mcp'], /no flag --nonsense/],
    [['ftp://127.0.0.1/mcp'], /neither http nor https/],
    [['--header', 'Host: x', 'http://127.0.0.1:1/mcp'], /cannot be sent/],
  ]) {
    test(`wrong usage: ${args.join(' ') || 'no words'}`, async () => {
      const result = await inspect(args);
      assert.equal(result.code, 64, result.stderr);
      assert.match(result.stderr, pattern);
      assert.equal(result.stdout, '');
    });
  }
});

suite('streams', () => {
  test('RES a polled stream: the answer comes on GET with Last-Event-ID, when it was told to', async t => {
    let closedAt;
    let cameAfter;
    const server = await played(t, (method, message, { request, response }) => {
      if (request.method === 'GET' && request.headers['last-event-id']) {
        cameAfter = performance.now() - closedAt;
        assert.equal(request.headers['last-event-id'], 's-0');
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(
          'id: s-1\ndata: {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"late"}]}}\n\n');
      } else if (method === 'tools/call') {
        assert.equal(message.id, 3);
        closedAt = performance.now();
        response.writeHead(200, { 'content-type': 'text/event-stream' })
          .end('id: s-0\nretry: 300\ndata:\n\n');
      }
    });
    assert.equal(ok(await inspect([server.url, 'call', 'x'])).stdout, 'late\n');
    assert.ok(cameAfter >= 290, `${cameAfter} ms`);
  });

  test('resumed on a real server, which keeps its events', async t => {
    const [{ port }] = await conf(t, 1);
    let cut = false;
    // A proxy that cuts the first stream of a call after its first event.
    const proxy = http.createServer(async (request, response) => {
      const chunks = [];
      for await (const piece of request) chunks.push(piece);
      const body = Buffer.concat(chunks);
      const up = http.request({ port, host: '127.0.0.1', path: request.url, method: request.method,
        headers: request.headers }, answer => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.on('data', piece => {
          response.write(piece);
          if (!cut && body.includes('tools/call')) {
            cut = true;
            setTimeout(() => response.destroy(), 20);
          }
        }).on('end', () => response.end()).on('error', () => {});
      });
      up.on('error', () => response.destroy());
      up.end(body);
    });
    await new Promise(resolve => proxy.listen(0, '127.0.0.1', resolve));
    t.after(() => { proxy.closeAllConnections(); proxy.close(); });
    const url = `http://127.0.0.1:${proxy.address().port}/mcp`;
    const result = ok(await inspect([url, 'call', 'slow', '{"ms":300}']));
    assert.ok(cut);
    assert.match(result.stderr, /the stream of tools\/call is taken up again/);
  });

  test('events with every kind of line end, comments and unknown fields', async t => {
    const peer = await rawPeer(t, async (connection, request) => {
      const message = request.body ? JSON.parse(request.body) : {};
      if (message.method === 'initialize') {
        return connection.send(rawAnswer(200, { 'Content-Type': 'application/json' },
          JSON.stringify({ jsonrpc: '2.0', id: message.id, result: INFO })));
      }
      if (message.method === 'tools/list') {
        await connection.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n' +
          'Transfer-Encoding: chunked\r\n\r\n');
        await connection.send(chunk(': hi\r\r\n'));
        await connection.dribble(chunk(
          `what: ever\revent: message\ndata: {"jsonrpc":"2.0",\r\ndata: "id":${message.id},` +
          '"result":{"tools":[{"name":"a"}]}}\r\r'));
        return connection.send('0\r\n\r\n');
      }
      return connection.send(rawAnswer(message.method === 'notifications/initialized' ? 202 : 405, {}));
    });
    assert.deepEqual(names(ok(await inspect(['--json', '--era', 'legacy', peer.url, 'tools']))), ['a']);
  });

  test('[C7] no notification stream when it is not wanted', async t => {
    const streams = () => server.seen.filter(row => row.http === 'GET').length;
    let waits = false;
    const server = await played(t, async method => {
      if (method !== 'tools/list') return undefined;
      // The command ends with this answer: the stream, if there is one, must be seen before.
      for (let end = performance.now() + 3000; waits && !streams() && performance.now() < end;) {
        await sleep(10);
      }
      return { tools: [] };
    });
    ok(await inspect(['--no-notification-stream', server.url, 'tools']));
    assert.equal(streams(), 0);
    waits = true;
    ok(await inspect([server.url, 'tools']));
    assert.equal(streams(), 1);
  });
});

suite('an interactive session', () => {
  test('the network log is live, and off when asked', async t => {
    const replica = await tiny(t);
    const result = ok(await inspect(['-i', replica.url],
      { input: 'call count\nlog off\ncall count\nhelp\nquit\ncall count\n' }));
    assert.equal(result.stdout, 'tiny 1\ntiny 2\n');
    assert.match(result.stderr, /^\S+Z \d+ > POST http:/m);
    assert.match(result.stderr, /mcp-session-id: #[0-9a-f]{8}/i);
    assert.match(result.stderr, /call NAME \[JSON\]/);
    for (const id of replica.requests.map(row => row.headers['mcp-session-id'])) {
      if (id) assert.ok(!result.stderr.includes(id), 'the session id is hashed');
    }
  });

  test('a lost session: told, and opened again by the next command', async t => {
    const replica = await tiny(t);
    const serve = replica.server.listeners('request')[0];
    replica.server.removeAllListeners('request').on('request', (request, response) => {
      if (replica.requests.length === 4) replica.sessions.clear();
      serve(request, response);
    });
    const result = await inspect(['-i', '--no-notification-stream', replica.url],
      { input: 'call count\ncall count\ncall count\ncall count\n' });
    assert.equal(result.code, 1);
    assert.match(result.stderr, /Error POSTing to endpoint \(HTTP 404\)/);
    assert.match(result.stderr, /the session is lost; the next command opens a new one/);
    assert.equal(result.stdout, 'tiny 1\ntiny 1\ntiny 2\n');
    assert.equal(replica.initializes, 2);
    assert.equal(replica.sessions.size, 0, 'and the last one was deleted');
  });

  test('words that are no command do not end it', async t => {
    const replica = await tiny(t);
    const result = await inspect(['-i', replica.url], { input: 'dance\ncall\ncall count {\ncall count\n' });
    assert.equal(result.code, 1);
    assert.equal(result.stdout, 'tiny 1\n');
  });
});

test('Ctrl-C ends the session at the server too', async t => {
  const server = await played(t, (method, message, { request, response }) => {
    if (method === 'tools/call') return new Promise(() => {});
    if (method === 'initialize') {
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's1' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: INFO }));
    }
    if (request.method === 'DELETE') response.writeHead(204).end();
    return undefined;
  });
  const child = start(t, 'inspect', LIMPET, ['inspect', server.url, 'call', 'slow']);
  while (!server.seen.some(row => row.message?.method === 'tools/call')) {
    await new Promise(resolve => setTimeout(resolve, 10));
  }
  const { code } = await child.stop('SIGINT');
  assert.equal(code, 1);
  assert.equal(server.seen.at(-1).http, 'DELETE');
});

suite('mcp.json', () => {
  const entry = (t, server, extra = {}) => {
    const dir = folder(t);
    writeFileSync(path.join(dir, 'mcp.json'), JSON.stringify({ mcpServers: { shop: server }, ...extra }));
    return dir;
  };

  test('a server by its name, with its fields and settings', async t => {
    const server = await played(t, (method, message, { request }) =>
      (method === 'tools/list' ? { tools: [{ name: request.headers['x-team'] }] } : undefined));
    const cwd = entry(t, { type: 'http', url: server.url, headers: { 'X-Team': '${TEAM}' },
      suppressNotificationStream: true });
    const options = { cwd, env: { TEAM: 'blue' } };
    assert.deepEqual(names(ok(await inspect(['--json', 'shop', 'tools'], options))), ['blue']);
    assert.equal(server.seen.filter(row => row.http === 'GET').length, 0);
    const file = ['--config', path.join(cwd, 'mcp.json')];
    ok(await inspect([...file, 'shop', 'tools'], { env: options.env }));
  });

  test('a name that is not there', async t => {
    const cwd = entry(t, { url: 'http://127.0.0.1:1/mcp' });
    const result = await inspect(['stall', 'tools'], { cwd });
    assert.equal(result.code, 64);
    assert.match(result.stderr, /shop/);
  });
});

suite('TLS', () => {
  function certificate(t) {
    const dir = folder(t);
    const [key, cert] = ['key.pem', 'cert.pem'].map(name => path.join(dir, name));
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
      '-nodes', '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost',
      '-keyout', key, '-out', cert], { stdio: 'ignore' });
    return { cert, options: { key: readFileSync(key), cert: readFileSync(cert) } };
  }

  test('a self-signed server: refused, believed by --cacert, let through by --insecure', async t => {
    const { cert, options } = certificate(t);
    const { port } = await played(t,
      method => (method === 'tools/list' ? { tools: [{ name: 'sealed' }] } : undefined),
      { create: https.createServer, options });
    const url = `https://localhost:${port}/mcp`;
    const refused = await inspect([url, 'tools']);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /nobody we trust has signed the certificate; name its CA with --cacert/);
    assert.deepEqual(names(ok(await inspect(['--json', '--cacert', cert, url, 'tools']))), ['sealed']);
    const insecure = ok(await inspect(['--insecure', url, 'tools']));
    assert.match(insecure.stderr, /--insecure: the server's certificate is not checked/);
    const otherName = await inspect(
      ['--cacert', cert, `https://127.0.0.1:${port}/mcp`, 'tools']);
    assert.equal(otherName.code, 1);
    assert.match(otherName.stderr, /certificate is for another name/);
  });

  test('https to a port that speaks http', async t => {
    const { port } = await tiny(t);
    const result = await inspect([`https://127.0.0.1:${port}/mcp`, 'tools']);
    assert.equal(result.code, 1);
    assert.match(result.stderr, /TLS handshake failed; see whether that port speaks https/);
    assert.equal((await send(`http://127.0.0.1:${port}/mcp`)).status, 400, 'it is still there');
  });

  test('a certificate file that is none', async t => {
    const file = path.join(folder(t), 'ca.pem');
    const missing = await inspect(['--cacert', file, 'https://127.0.0.1:1/mcp', 'tools']);
    assert.equal(missing.code, 64);
    assert.match(missing.stderr, /--cacert: /);
    writeFileSync(file, 'no certificate');
    assert.equal((await inspect(['--cacert', file, 'https://127.0.0.1:1/mcp', 'tools'])).code, 64);
  });
});
