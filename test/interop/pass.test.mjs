// Paths that a rule passes on (key `pass`): logins at the official SDK's authorization server, whose
// registrations and codes are in one process's memory; and what must not get through.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite, test } from 'node:test';
import express from 'express';
import { exchangeAuthorization, registerClient, startAuthorization } from
  '@modelcontextprotocol/sdk/client/auth.js';
import { DemoInMemoryAuthProvider } from
  '@modelcontextprotocol/sdk/examples/server/demoInMemoryOAuthProvider.js';
import { mcpAuthRouter } from '@modelcontextprotocol/sdk/server/auth/router.js';
import { gateway } from '../system/lib/gateway.mjs';
import { freshFetch, send } from '../system/lib/http.mjs';
import { freePort } from '../system/lib/ports.mjs';
import { rawAnswer, rawExchange, rawPeer, requestText } from '../system/lib/raw.mjs';
import { assertRpcError, initialize, post, Session } from '../system/lib/rpc.mjs';
import { tinies } from '../system/lib/tiny.mjs';

const LOGIN = ['/register', '/authorize', '/token', '/.well-known/'];
const REDIRECT = 'http://localhost:9/done';

// An MCP server with sessions, and a whole authorization server beside it, in one process's memory.
async function withLogin(t, name, issuer) {
  const app = express();
  const sessions = new Set();
  const seen = [];
  app.use((asked, _, next) => { seen.push(asked.path); next(); });
  app.use(mcpAuthRouter({ provider: new DemoInMemoryAuthProvider(), issuerUrl: new URL(issuer),
    authorizationOptions: { rateLimit: false }, tokenOptions: { rateLimit: false },
    clientRegistrationOptions: { rateLimit: false } }));
  app.all('/mcp', express.json(), (asked, answer) => {
    const { id, method } = asked.body;
    if (method === 'initialize') {
      const session = randomUUID();
      sessions.add(session);
      answer.set('Mcp-Session-Id', session);
    } else if (!sessions.has(asked.get('Mcp-Session-Id'))) {
      answer.status(404).json({ jsonrpc: '2.0', id: null,
        error: { code: -32001, message: 'Session not found' } });
      return;
    }
    if (id === undefined) { answer.status(202).end(); return; }
    answer.json({ jsonrpc: '2.0', id, result: method === 'initialize'
      ? { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name, version: '1' } }
      : { content: [{ type: 'text', text: name }] } });
  });
  const server = await new Promise(resolve => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening));
  });
  const stop = () => new Promise(resolve => {
    server.closeAllConnections();
    server.close(resolve);
  });
  t.after(stop);
  return { name, seen, stop, url: `http://127.0.0.1:${server.address().port}/mcp` };
}

// Three steps of the official client, each on a fresh connection; the token.
async function login(at) {
  const fresh = freshFetch();
  const fetchFn = (url, init = {}) =>
    fresh(url, { ...init, body: init.body && String(init.body) });
  const metadata = await (await fetchFn(`${at}/.well-known/oauth-authorization-server`)).json();
  const clientMetadata = { redirect_uris: [REDIRECT], client_name: 'test',
    token_endpoint_auth_method: 'none' };
  const client = await registerClient(at, { metadata, clientMetadata, fetchFn });
  const { authorizationUrl, codeVerifier } = await startAuthorization(at,
    { metadata, clientInformation: client, redirectUrl: REDIRECT, state: 'a b&c' });
  const page = await send(authorizationUrl);
  assert.equal(page.status, 302, page.text);
  assert.match(page.headers['set-cookie'][0], /^demo_session=/);
  const back = new URL(page.headers.location);
  assert.equal(back.searchParams.get('state'), 'a b&c');
  const tokens = await exchangeAuthorization(at, { metadata, clientInformation: client,
    authorizationCode: back.searchParams.get('code'), codeVerifier, redirectUri: REDIRECT, fetchFn });
  return tokens.access_token;
}

const loginPaths = replica => replica.seen.filter(path => path !== '/mcp');

suite('pass', () => {
  test('AFF-13 20 logins of three steps, sessions of the same users on three replicas', async t => {
    const [port, otherPort] = [await freePort(), await freePort()];
    const at = `http://127.0.0.1:${port}`;
    const replicas = await Promise.all(['r1', 'r2', 'r3'].map(name => withLogin(t, name, at)));
    const urls = replicas.map(replica => replica.url);
    const limpet = await gateway(t, { replicas: urls, port, server: { pass: LOGIN } });
    // Another gateway, which has its own key and the replicas in another order, picks the same one.
    await gateway(t, { replicas: urls.toReversed(), port: otherPort,
      flags: LOGIN.flatMap(path => ['--pass', path]) });
    const owners = new Set();
    for (let i = 0; i < 20; i++) {
      const token = await login(i % 2 ? at : at.replace(port, otherPort));
      const session = await Session.open(limpet.url,
        { headers: { authorization: `Bearer ${token}` } });
      owners.add(await session.tool('whoami'));
    }
    assert.equal(owners.size, 3, 'sessions are spread');
    const pinned = replicas.filter(replica => loginPaths(replica).length > 0);
    assert.equal(pinned.length, 1, 'logins are not');
    assert.equal(loginPaths(pinned[0]).length, 80);
    const metrics = (await limpet.admin('/metrics')).text;
    const passed = Number(/^limpet_passed_total (\d+)$/m.exec(metrics)[1]);
    assert.ok(passed >= 60, `${passed}`);
    assert.equal((await limpet.record(line => line.path === '/token')).reason, 'answered');
    assert.doesNotMatch(limpet.proc.log, /code_challenge|code=/, 'queries are in no log');
    // Only when it is down another one takes over, for all of the paths.
    await pinned[0].stop();
    assert.ok(await login(at));
    assert.ok(await login(at));
    const heirs = replicas.filter(replica =>
      replica !== pinned[0] && loginPaths(replica).length > 0);
    assert.deepEqual(heirs.map(replica => loginPaths(replica).length), [8]);
  });

  test('AFF-13 fields, query and body of any method arrive as they were sent', async t => {
    const peer = await rawPeer(t, (connection, asked) => connection.send(rawAnswer(418,
      { 'Content-Type': 'text/x', 'X-Mine': 'a', 'WWW-Authenticate': 'Basic realm="x"',
        'Set-Cookie': ['a=1', 'b=2'] }, asked.method === 'HEAD' ? '' : `of ${asked.target}`)));
    const limpet = await gateway(t, { replicas: [peer.url],
      server: { pass: [{ path: '/a', to: 'any' }], cookie_jar: true,
        origins: ['https://app.example'] } });
    const body = '\0\xff not JSON';
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD', 'PROPFIND']) {
      const sent = { Accept: 'text/html', 'Accept-Encoding': 'br', Origin: 'https://app.example',
        Cookie: 'x=1', Authorization: 'Basic eA==', 'Content-Type': 'text/plain', 'X-Odd': '%41;"' };
      const answer = await rawExchange(limpet.port, requestText(method, '/a/b%20c?q=%2F&&r', sent,
        method === 'GET' || method === 'HEAD' ? undefined : body));
      const got = peer.requests.at(-1);
      assert.equal(answer.status, 418, method);
      assert.equal(got.method, method);
      assert.equal(got.target, '/a/b%20c?q=%2F&&r');
      for (const [name, value] of Object.entries(sent)) {
        assert.deepEqual(got.all(name.toLowerCase()), [value], `${method} ${name}`);
      }
      assert.equal(got.body, method === 'GET' || method === 'HEAD' ? '' : body);
      assert.equal(got.header('host'), `127.0.0.1:${peer.port}`);
      assert.equal(got.header('x-forwarded-host'), '127.0.0.1');
      if (method !== 'HEAD') assert.equal(answer.body, 'of /a/b%20c?q=%2F&&r');
      assert.deepEqual(answer.all('set-cookie'), ['a=1', 'b=2']);
      assert.deepEqual([answer.header('x-mine'), answer.header('www-authenticate'),
        answer.header('allow'), answer.header('access-control-allow-origin')],
      ['a', 'Basic realm="x"', undefined, undefined]);
    }
    const large = 'x'.repeat(300_000);
    await rawExchange(limpet.port, requestText('PUT', '/a', {}, large));
    assert.equal(peer.requests.at(-1).body, large);
    // A session id is Limpet's own affair and is not passed; Host and Origin are checked.
    await rawExchange(limpet.port, requestText('POST', '/a', { 'Mcp-Session-Id': 'x' }, ''));
    assert.equal(peer.requests.at(-1).header('mcp-session-id'), undefined);
    const count = peer.requests.length;
    for (const fields of [{ Host: 'evil.example' }, { Origin: 'https://evil.example' }]) {
      assert.equal((await rawExchange(limpet.port, requestText('GET', '/a', fields))).status, 403);
    }
    for (const path of ['/ab', '/b', '/A', '/']) {
      assert.equal((await rawExchange(limpet.port, requestText('GET', path))).status, 404, path);
    }
    assert.equal(peer.requests.length, count);
    // A 401 there says nothing of the MCP server.
    assertRpcError(await post(limpet.url, '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      { 'mcp-session-id': 'forged' }), { status: 404, code: -32001, id: 1 });
  });

  test('AFF-13 no way past the checks of an MCP path', async t => {
    const [replica] = await tinies(t, 1);
    const limpet = await gateway(t, { replicas: [replica.url], path: '/tools',
      server: { sse_path: '/sse', sse_upstream: '/old', pass: ['/', '/mcp/extra/'] } });
    const odd = ['/mcp', '/mcp/', '/MCP', '/Mcp/', '/m%63p', '/mcp;v=1', '/mcp/x', '/old', '/old/x',
      '/tools/', '/TOOLS', '/sse/', '/x/../mcp', '/./mcp', '//mcp', '/x//mcp', '/x/%2e%2e/mcp',
      '/%2Fmcp', '/x%2f..%2fmcp', '/x/..%5cmcp', '/mcp%00', '/%256dcp', '/x/..', '/%', '/%zz',
      '/mcp/extra/../', '/x/..;/mcp'];
    for (const path of odd) {
      const answer = await rawExchange(limpet.port,
        requestText('POST', path, { 'Content-Type': 'application/json' }, initialize(1)));
      assert.ok([400, 404].includes(answer.status), `${path}: ${answer.status}`);
    }
    assert.equal(replica.requests.length, 0);
    assert.ok(await limpet.record(line => line.reason === 'path_refused'));
    for (const path of ['/x', '/mcpx', '/x/mcp', '/mcp/extra/login', '/', '/x/', '/a%20b']) {
      await rawExchange(limpet.port, requestText('GET', path));
      assert.equal(replica.requests.at(-1)?.url, path);
    }
    const session = await Session.open(limpet.url);
    assert.equal(await session.tool('whoami'), 'r1');
  });
});
