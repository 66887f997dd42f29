// Cases from the field about the gateway and the client that belong to no other file, each by its code.
import assert from 'node:assert/strict';
import http from 'node:http';
import { suite, test } from 'node:test';
import { connect, KINDS } from './lib/flow.mjs';
import { haproxy, limpetReplicas, nginx } from './lib/fronts.mjs';
import { gateway } from './lib/gateway.mjs';
import { inspect } from './lib/inspect.mjs';
import { played } from './lib/played.mjs';
import { freePort } from './lib/ports.mjs';
import { sleep } from './lib/proc.mjs';
import { chunk, rawAnswer, rawExchange, rawPeer, requestText } from './lib/raw.mjs';
import { conf, urls } from './lib/replicas.mjs';
import { assertRpcError, initialize, modern, notification, post, POST_HEADERS, request,
  send, SESSION, Session, toolCall } from './lib/rpc.mjs';
import { tinies, tiny } from './lib/tiny.mjs';

suite('whose session it is', () => {
  test('SEC-03 two users, one replica, one kept connection: two sessions, each with its token', async t => {
    const replica = await tiny(t, 'r');
    const limpet = await gateway(t, { replicas: [replica.url] });
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    const users = {};
    const ask = (name, body, id) => send(limpet.url, { method: 'POST', agent, body,
      headers: { ...POST_HEADERS, authorization: `Bearer ${name}`, ...(id && { [SESSION]: id }) } });
    for (const name of ['A', 'B']) {
      users[name] = (await ask(name, initialize(0))).headers[SESSION];
      assert.equal((await ask(name, notification('notifications/initialized'), users[name])).status, 202);
    }
    const count = async name =>
      (await ask(name, toolCall(1, 'count'), users[name])).json.result.content[0].text;
    assert.equal(await count('A'), 'r 1');
    assert.equal(await count('A'), 'r 2');
    assert.equal(await count('B'), 'r 1', 'B does not see what A has counted');
    assert.equal(replica.initializes, 2);
    const [a, b] = replica.sessions.keys();
    assert.notEqual(a, b);
    for (const asked of replica.requests) {
      const id = asked.headers['mcp-session-id'];
      const owner = asked.headers.authorization;
      if (id) assert.equal(owner, id === a ? 'Bearer A' : 'Bearer B');
    }
    const opened = replica.requests.filter(asked => asked.json.method === 'initialize');
    assert.deepEqual(opened.map(asked => asked.headers.authorization), ['Bearer A', 'Bearer B']);
  });

  test('MSG-06 two users whose tools ask at the same time: each gets the own question only', async t => {
    const replicas = await conf(t, 2);
    const limpet = await gateway(t, { replicas: urls(replicas) });
    const kind = KINDS.conf;
    const users = await Promise.all([1, 2, 3, 4].map(() => connect(limpet.url)));
    t.after(() => Promise.all(users.map(({ client }) => client.close())));
    const [name, args] = kind.tool.elicitation;
    await Promise.all(users.map(({ client }) => client.callTool({ name, arguments: args })));
    assert.deepEqual(users.map(({ seen }) => seen.elicitation), [1, 1, 1, 1]);
    // Two ask again, the others hear nothing.
    await Promise.all(users.slice(0, 2).map(({ client }) => client.callTool({ name, arguments: args })));
    assert.deepEqual(users.map(({ seen }) => seen.elicitation), [2, 2, 1, 1]);
  });

  test('SEC-07 a public name in every form is served; another is refused with a word in the log', async t => {
    const replica = await tiny(t);
    const limpet = await gateway(t, { replicas: [replica.url], server: { hosts: ['mcp.example'] } });
    const ask = (host, more = {}) => rawExchange(limpet.port, requestText('POST', '/mcp',
      { ...POST_HEADERS, Host: host, ...more }, initialize(1)));
    for (const host of ['mcp.example', 'mcp.example:443', 'MCP.example']) {
      assert.equal((await ask(host)).status, 200, host);
    }
    const refused = await ask('other.example"%\\x');
    assert.ok([400, 403, 421].includes(refused.status));
    const plain = await ask('other.example:8443');
    assert.equal(plain.status, 403);
    assert.doesNotMatch(plain.body, /mcp\.example/);
    const tail = 'is not allowed at server default; if clients may use it, add it to';
    await limpet.proc.says(new RegExp(
      String.raw`its Host \\"other\.example(:8443|%22%25%5Cx)\\" ${tail} hosts, or set public_url`));
    await sleep(1100); // one such line a second
    assert.equal((await ask('mcp.example', { Origin: 'https://evil.example' })).status, 403);
    await limpet.proc.says(new RegExp(String.raw`its Origin \\"https://evil\.example\\" ${tail} origins`));
  });
});

suite('what goes upstream', () => {
  const refuses = `http-request return status 411 if { req.hdr(Transfer-Encoding) -m found }`;

  test('SSE-05 a front that takes no chunks: gateway and client go through whole sessions', async t => {
    const [at] = await limpetReplicas(t, 1);
    const front = await haproxy(t, [at], { frontend: refuses });
    const listed = await inspect(['--json', front, 'tools']);
    assert.equal(listed.code, 0, listed.stderr);
    const limpet = await gateway(t, { replicas: [front] });
    const session = await Session.open(limpet.url);
    // What came in chunks goes on with its length.
    const body = toolCall(7, 'echo', { text: 'x' });
    const chunked = await rawExchange(limpet.port, requestText('POST', '/mcp', { ...POST_HEADERS,
      'Mcp-Session-Id': session.id, 'Transfer-Encoding': 'chunked' }) +
      chunk(body.slice(0, 9)) + chunk(body.slice(9)) + '0\r\n\r\n');
    assert.equal(chunked.status, 200, chunked.body);
    assert.equal((await session.delete()).status < 300, true);
  });

  test('SSE-05 every POST has a Content-Length, also of what came in chunks', async t => {
    const peer = await rawPeer(t, (connection, asked) => connection.send(rawAnswer(200,
      { 'Content-Type': 'application/json', ...(/initialize"/.test(asked.body) &&
        { 'Mcp-Session-Id': 's' }) },
      JSON.stringify({ jsonrpc: '2.0', id: 0, result: {} }))));
    const limpet = await gateway(t, { replicas: [peer.url] });
    const opened = await rawExchange(limpet.port, requestText('POST', '/mcp',
      { ...POST_HEADERS, 'Transfer-Encoding': 'chunked' }) + chunk(initialize(0)) + '0\r\n\r\n');
    assert.equal(opened.status, 200);
    const large = request(1, 'tools/call', { name: 'x', arguments: { a: 'y'.repeat(60_000) } });
    const called = await rawExchange(limpet.port, requestText('POST', '/mcp', { ...POST_HEADERS,
      'Mcp-Session-Id': opened.header('mcp-session-id'), 'Transfer-Encoding': 'chunked' }) +
      chunk(large.slice(0, 40_000)) + chunk(large.slice(40_000)) + '0\r\n\r\n');
    assert.equal(called.status, 200);
    const posts = peer.requests.filter(asked => asked.method === 'POST');
    assert.deepEqual(posts.map(asked => [asked.header('content-length'), asked.header('transfer-encoding')]),
      [[String(initialize(0).length), undefined], [String(large.length), undefined]]);
  });

  test('SSE-06 the client waits for the answer to initialized before it asks on', async t => {
    let isInitialized = false;
    const server = await played(t, async (method, message, { response }) => {
      if (method === 'notifications/initialized') {
        await sleep(300);
        isInitialized = true;
        response.writeHead(202).end();
      } else if (method && method !== 'initialize' && method !== 'server/discover' && !isInitialized) {
        response.writeHead(400).end('not initialised');
      } else if (method === 'tools/list') return { tools: [] };
      return undefined;
    });
    const listed = await inspect(['--json', server.url, 'tools']);
    assert.equal(listed.code, 0, listed.stderr);
    const [noted] = server.asked('notifications/initialized');
    const [list] = server.asked('tools/list');
    assert.ok(list.at - noted.at >= 290, `${list.at - noted.at}`);
  });
});

suite('SSE-04 no old SSE where something else is wrong', () => {
  for (const status of [401, 403, 429, 500, 502, 503]) {
    test(`initialize gets ${status}: no GET follows, and that is what is told`, async t => {
      const server = await played(t, (method, message, { response }) => {
        response.writeHead(status, { 'retry-after': '1' }).end('no');
      });
      const told = await inspect([server.url, 'tools']);
      assert.notEqual(told.code, 0);
      assert.match(told.stderr, new RegExp(`${status}`));
      assert.deepEqual(server.seen.filter(row => row.http === 'GET' && !/well-known/.test(row.url)), []);
    });
  }

  test('nobody there, and nobody who answers: no GET either', async t => {
    const port = await freePort();
    const refused = await inspect([`http://127.0.0.1:${port}/mcp`, 'tools']);
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /refused/);
    const mute = await rawPeer(t, () => undefined);
    const silent = await inspect(['--timeout', '1', mute.url, 'tools']);
    assert.notEqual(silent.code, 0);
    assert.ok(mute.requests.every(asked => asked.method === 'POST'), 'no GET');
    const plain = await tiny(t); // which says so in the midst of the handshake
    const noTls = await inspect(['--era', 'legacy', plain.url.replace('http', 'https'), 'tools']);
    assert.notEqual(noTls.code, 0);
    assert.match(noTls.stderr, /TLS/);
    assert.equal(plain.requests.length, 0);
  });

  test('405, then 404 on GET: both are told, the first one first', async t => {
    const server = await played(t, (method, message, { request: asked, response }) => {
      response.writeHead(asked.method === 'POST' ? 405 : 404).end();
    });
    const told = await inspect([server.url, 'tools']);
    assert.notEqual(told.code, 0);
    assert.match(told.stderr, /405[^]*404/);
    const got = server.seen.find(row => row.http === 'GET');
    assert.match(got.headers.accept, /text\/event-stream/);
  });

  test('a 404 that is a lost session is no reason', async t => {
    const server = await played(t, (method, message, { response }) => {
      response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify({
        jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } }));
    });
    const told = await inspect([server.url, 'tools']);
    assert.notEqual(told.code, 0);
    assert.deepEqual(server.seen.filter(row => row.http === 'GET'), []);
  });
});

suite('AFF-11 the session id has a bound', () => {
  for (const [size, cookies] of [[128, 0], [128, 400], [512, 0], [512, 600]]) {
    test(`${size} bytes upstream and ${cookies} of cookies, through fronts with small heads`, async t => {
      const replica = await tiny(t, 'r', { idOf: () => 'i'.repeat(size),
        headers: cookies ? { 'set-cookie': `pin=${'c'.repeat(cookies)}` } : {} });
      const limpet = await gateway(t, { replicas: [replica.url], server: { cookie_jar: true } });
      const at = `127.0.0.1:${limpet.port}`;
      const small = await nginx(t, [at], { server: 'large_client_header_buffers 4 4k;' });
      for (const url of [limpet.url, small]) {
        const session = await Session.open(url);
        assert.ok(session.id.length <= 1024, `${session.id.length}`);
        assert.equal(await session.tool('whoami'), 'r');
        if (cookies) assert.match(replica.requests.at(-1).headers.cookie, /^pin=c+$/);
      }
    });
  }

  test('over 512 bytes: refused with the limit, and the session is ended at the replica', async t => {
    const replica = await tiny(t, 'r', { idOf: () => 'i'.repeat(513) });
    const limpet = await gateway(t, { replicas: [replica.url] });
    const error = assertRpcError(await post(limpet.url, initialize(5)),
      { status: 502, code: -32603, id: 5 });
    assert.match(error.message, /512 bytes/);
    for (const end = performance.now() + 5000; replica.sessions.size;) {
      assert.ok(performance.now() < end, 'it was not ended');
      await sleep(20);
    }
  });
});

suite('two eras', () => {
  test('MOD-01 a modern client before a server with sessions is told the versions', async t => {
    const replicas = await limpetReplicas(t, 2, ['--era', 'legacy']);
    const own = await tiny(t); // says it as the TypeScript SDK does
    const limpet = await gateway(t, { servers: [
      { name: 'a', path: '/mcp', replicas: [own.url] },
      { name: 'b', path: '/b', replicas: replicas.map(at => `http://${at}/mcp`) }] });
    for (const asked of [modern('x', 'server/discover'), modern('y', 'tools/list')]) {
      const error = assertRpcError(await send(limpet.url, asked),
        { status: 400, code: -32022, id: JSON.parse(asked.body).id });
      assert.ok(error.data.supported.includes('2025-11-25'));
      assert.ok(!error.data.supported.includes('2026-07-28'));
      assert.equal(error.data.requested, '2026-07-28');
    }
    assert.equal(own.initializes, 0);
    // Then the legacy way of the same client works.
    for (const url of [limpet.url, limpet.at('/b')]) {
      const listed = await inspect(['--json', url, 'tools']);
      assert.equal(listed.code, 0, listed.stderr);
      assert.ok(listed.json.tools.length > 0);
    }
  });

  test('MOD-01 Last-Event-ID and a session id of a modern request reach nobody', async t => {
    const replica = await tiny(t, 'r', { mintsIds: false });
    const limpet = await gateway(t, { replicas: [replica.url] });
    const asked = modern(1, 'tools/list', {}, { headers: { [SESSION]: 'stray', 'last-event-id': '7' } });
    assert.equal((await send(limpet.url, asked)).status, 200);
    assert.equal(replica.requests[0].headers['mcp-session-id'], undefined);
  });

  test('MOD-02 what agrees is passed, in any case of the names; what needs no name has none', async t => {
    const replica = await tiny(t, 'r', { mintsIds: false });
    const limpet = await gateway(t, { replicas: [replica.url] });
    for (const asked of [modern(1, 'tools/call', { name: 'write', arguments: {} }),
      modern(2, 'resources/read', { uri: 'file:///a' }), modern(3, 'prompts/get', { name: 'p' }),
      modern(4, 'tools/list')]) {
      assert.equal((await send(limpet.url, asked)).status, 200, asked.body);
      const upper = Object.fromEntries(Object.entries(asked.headers)
        .map(([name, value]) => [name.toUpperCase(), value]));
      assert.equal((await send(limpet.url, { ...asked, headers: upper })).status, 200, asked.body);
    }
    assert.equal(replica.requests.length, 8);
  });

  test('MOD-02 with 2025-11-25 nothing is compared', async t => {
    const [replica] = await tinies(t, 1);
    const limpet = await gateway(t, { replicas: [replica.url] });
    const session = await Session.open(limpet.url);
    for (const headers of [{ 'mcp-name': 'read' }, { 'mcp-name': ['read', 'other'] }, {}]) {
      const answer = await session.post(toolCall(1, 'whoami'), headers);
      assert.equal(answer.json.result.content[0].text, 'r1', JSON.stringify(headers));
    }
  });
});
