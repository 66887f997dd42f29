// The sessionless era (2026-07-28) through the gateway: any replica, no session header anywhere, and
// every request whose headers and body disagree is refused (wire document 7.3, 7.4). And both eras at
// the same time on one path, against servers made of both SDKs.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { session, sessions } from '../system/lib/flow.mjs';
import { gateway } from '../system/lib/gateway.mjs';
import { freshFetch, openEvents, send } from '../system/lib/http.mjs';
import { rawPeer } from '../system/lib/raw.mjs';
import { conf, modernOnly, urls } from '../system/lib/replicas.mjs';
import { assertRpcError, MODERN, modern, POST_HEADERS, SESSION } from '../system/lib/rpc.mjs';
import { tinies } from '../system/lib/tiny.mjs';

const whoami = (id, options) => modern(id, 'tools/call', { name: 'whoami', arguments: {} }, options);

async function modernClient(url, onAnswer) {
  const client = new Client({ name: 'limpet-test', version: '1' },
    { capabilities: {}, versionNegotiation: { mode: { pin: MODERN } } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url),
    { fetch: freshFetch({ onAnswer }) }));
  return client;
}

async function ask(client) {
  const result = await client.callTool({ name: 'whoami', arguments: {} });
  return result.content[0].text;
}

async function spread(url, calls) {
  const answers = [];
  const client = await modernClient(url, answer => answers.push(answer));
  const owners = {};
  for (let i = 0; i < calls; i++) {
    const owner = await ask(client);
    owners[owner] = (owners[owner] ?? 0) + 1;
  }
  assert.ok((await client.listTools()).tools.length > 0);
  await client.close();
  return { owners, answers };
}

suite('modern clients and servers', () => {
  test('control: the client directly on one replica', async t => {
    const [replica] = await modernOnly(t, 1);
    const { owners } = await spread(replica.url, 3);
    assert.deepEqual(owners, { r1: 3 });
  });

  test('requests are spread over all replicas and no session header appears', async t => {
    const replicas = await modernOnly(t, 3);
    const limpet = await gateway(t, { replicas: urls(replicas) });
    const { owners, answers } = await spread(limpet.url, 30);
    assert.deepEqual(Object.keys(owners).sort(), ['r1', 'r2', 'r3']);
    assert.ok(answers.length >= 31);
    for (const answer of answers) assert.equal(answer.headers[SESSION], undefined);
    for (const seen of (await Promise.all(replicas.map(r => r.seen()))).flat()) {
      assert.equal(seen.headers[SESSION], undefined);
      assert.equal(seen.headers['mcp-protocol-version'], MODERN);
      assert.ok(seen.headers['mcp-method']);
    }
  });

  test('MOD-01 a stale session id on a modern request is neither demanded, judged nor passed on', async t => {
    const [replica] = await modernOnly(t, 1);
    const limpet = await gateway(t, { replicas: [replica.url] });
    const answer = await send(limpet.url, whoami('a', { headers: { [SESSION]: 'lp1_stale' } }));
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers[SESSION], undefined);
    const [seen] = (await replica.seen()).slice(-1);
    assert.equal(seen.headers[SESSION], undefined);
  });

  test('names outside ASCII and mirrored arguments pass, headers and bytes as they were', async t => {
    const [replica] = await modernOnly(t, 1);
    const limpet = await gateway(t, { replicas: [replica.url] });
    const encoded = `=?base64?${Buffer.from('échø').toString('base64')}?=`;
    const named = await send(limpet.url,
      modern(1, 'tools/call', { name: 'échø', arguments: {} }, { headers: { 'mcp-name': encoded } }));
    assert.equal(named.status, 200, named.text);
    const sku = await send(limpet.url, modern(2, 'tools/call', { name: 'shop',
      arguments: { sku: 'A7' } }, { headers: { 'mcp-param-sku': 'A7', 'mcp-param-other': 'x' } }));
    assert.equal(sku.status, 200, sku.text);
    const [seen] = (await replica.seen()).slice(-1);
    assert.equal(seen.headers['mcp-param-sku'], 'A7');
    assert.equal(seen.headers['mcp-param-other'], 'x');
  });

  test('MOD-01 GET and DELETE are 405 with Allow', async t => {
    const limpet = await gateway(t, { replicas: urls(await modernOnly(t, 1)) });
    for (const method of ['GET', 'DELETE']) {
      const answer = await send(limpet.url, { method,
        headers: { accept: 'text/event-stream', 'mcp-protocol-version': MODERN } });
      assert.equal(answer.status, 405, `${method}: ${answer.status} ${answer.text}`);
      assert.match(answer.headers.allow ?? '', /POST/);
    }
  });

  test('a method that no modern server has is 404 with -32601, as the server says', async t => {
    const limpet = await gateway(t, { replicas: urls(await modernOnly(t, 1)) });
    const answer = await send(limpet.url, modern('m', 'ping'));
    assertRpcError(answer, { status: 404, code: -32601, id: 'm' });
  });
});

const without = (options, ...names) => {
  const headers = { ...options.headers };
  for (const name of names) delete headers[name];
  return { ...options, headers };
};
const bare = (params, id = 'x', method = 'tools/list') => ({ method: 'POST',
  headers: { ...POST_HEADERS, 'mcp-protocol-version': MODERN, 'mcp-method': method },
  body: JSON.stringify({ jsonrpc: '2.0', id, method, ...(params && { params }) }) });
const META = 'io.modelcontextprotocol/';

// what is sent -> [request, status, code]
const REFUSED = {
  'no Mcp-Method': [without(whoami('x'), 'mcp-method'), 400, -32020],
  'another Mcp-Method': [whoami('x', { headers: { 'mcp-method': 'tools/list' } }), 400, -32020],
  'Mcp-Method in another case':
    [whoami('x', { headers: { 'mcp-method': 'Tools/Call' } }), 400, -32020],
  'no Mcp-Name': [without(whoami('x'), 'mcp-name'), 400, -32020],
  'another Mcp-Name': [whoami('x', { headers: { 'mcp-name': 'shop' } }), 400, -32020],
  'bad base64 in Mcp-Name':
    [whoami('x', { headers: { 'mcp-name': '=?base64?%%%?=' } }), 400, -32020],
  'base64 of another name':
    [whoami('x', { headers: { 'mcp-name': '=?base64?c2hvcA==?=' } }), 400, -32020],
  'two Mcp-Name lines':
    [whoami('x', { headers: { 'mcp-name': ['whoami', 'shop'] } }), 400, -32020],
  'another uri in Mcp-Name': [modern('x', 'resources/read', { uri: 'file:///a' },
    { headers: { 'mcp-name': 'file:///b' } }), 400, -32020],
  'no version header': [without(whoami('x'), 'mcp-protocol-version'), 400, -32020],
  'another version in the header':
    [whoami('x', { headers: { 'mcp-protocol-version': '2025-11-25' } }), 400, -32020],
  'another version in the body':
    [whoami('x', { meta: { [`${META}protocolVersion`]: '2031-01-01' } }), 400, -32020],
  'no params': [bare(undefined), 400, -32602],
  'no _meta': [bare({}), 400, -32602],
  'no version in _meta': [bare({ _meta: { [`${META}clientCapabilities`]: {} } }), 400, -32602],
  'no capabilities in _meta': [bare({ _meta: { [`${META}protocolVersion`]: MODERN } }), 400, -32602],
  'a version that nobody speaks': [whoami('x', { headers: { 'mcp-protocol-version': '2031-01-01' },
    meta: { [`${META}protocolVersion`]: '2031-01-01' } }), 400, -32022],
};

suite('MOD-02 modern requests that are refused before any replica sees them', () => {
  for (const [what, [options, status, code]] of Object.entries(REFUSED)) {
    test(what, async t => {
      const [replica] = await tinies(t, 1);
      const limpet = await gateway(t, { replicas: [replica.url] });
      const answer = await send(limpet.url, options);
      const error = assertRpcError(answer, { status, code, id: 'x' });
      assert.equal(replica.requests.length, 0, 'no replica saw it');
      if (code === -32022) {
        assert.ok(error.data.supported.includes(MODERN), 'data.supported');
        assert.equal(error.data.requested, '2031-01-01');
      }
    });
  }

  test('arrays, responses and broken JSON', async t => {
    const [replica] = await tinies(t, 1);
    const limpet = await gateway(t, { replicas: [replica.url] });
    const bodies = [['[]', -32600], [`[${whoami('x').body}]`, -32600],
      ['{"jsonrpc":"2.0","id":1,"result":{}}', -32600], ['{"jsonrpc"', -32700]];
    for (const [body, code] of bodies) {
      const answer = await send(limpet.url, { ...whoami('x'), body });
      assert.equal(answer.status, 400, body);
      assert.equal(answer.json?.error.code, code, `${body}: ${answer.text}`);
    }
    assert.equal(replica.requests.length, 0);
  });
});

suite('both eras on one path', () => {
  test('sessions hold while modern requests spread', async t => {
    const replicas = await conf(t, 3, { MODERN: '1' });
    const limpet = await gateway(t, { replicas: urls(replicas) });
    const [legacy, sessionless] = await Promise.all([
      sessions(24, 8, () => session(limpet.url, 'conf')),
      sessions(6, 6, () => spread(limpet.url, 20))]);
    assert.deepEqual(legacy.failures, []);
    assert.deepEqual(sessionless.failures, []);
    assert.equal(new Set(legacy.results.map(r => r.owner)).size, 3);
    const owners = new Set(sessionless.results.flatMap(r => Object.keys(r.owners)));
    assert.deepEqual([...owners].sort(), ['r1', 'r2', 'r3']);
    for (const { answers } of sessionless.results) {
      for (const answer of answers) assert.equal(answer.headers[SESSION], undefined);
    }
  });

  test('a modern client that leaves cancels at once', async t => {
    const peer = await rawPeer(t, connection => connection.send(
      'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'));
    const limpet = await gateway(t, { replicas: [peer.url] });
    const stream = await openEvents(limpet.url, modern('l', 'subscriptions/listen',
      { notifications: { toolsListChanged: true } }));
    assert.equal(stream.status, 200);
    const left = performance.now();
    stream.close();
    await peer.connections.at(-1).ended(2000);
    assert.ok(performance.now() - left < 500, 'the upstream was closed at once');
  });
});
