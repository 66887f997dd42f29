// One gateway, several public names (AUT-01 to AUT-03): the official SDK's server tells its own
// inner address, the official client's discovery sees the name it used.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import express from 'express';
import { discoverAuthorizationServerMetadata, discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams, selectResourceURL } from '@modelcontextprotocol/sdk/client/auth.js';
import { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter } from
  '@modelcontextprotocol/sdk/server/auth/router.js';
import { requireBearerAuth } from
  '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import { gateway } from '../system/lib/gateway.mjs';
import { open, send } from '../system/lib/http.mjs';
import { initialize, post, request, SESSION } from '../system/lib/rpc.mjs';

const ISSUER = 'https://login.example/t1';
const WELL_KNOWN = '/.well-known/oauth-protected-resource';
const good = { authorization: 'Bearer good' };

// The SDK's resource server: its metadata router and its bearer check, and sessions behind them.
async function guarded(t, name, path = '/mcp') {
  const app = express();
  const server = await new Promise(resolve => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening));
  });
  t.after(() => { server.closeAllConnections(); server.close(); });
  const url = new URL(`http://127.0.0.1:${server.address().port}${path}`);
  app.use(mcpAuthMetadataRouter({ resourceServerUrl: url, resourceName: name,
    oauthMetadata: { issuer: ISSUER, authorization_endpoint: `${ISSUER}/authorize`,
      token_endpoint: `${ISSUER}/token`, response_types_supported: ['code'] } }));
  const verifier = { verifyAccessToken: async token => {
    if (token !== 'good') throw new InvalidTokenError('no');
    return { token, clientId: 'c', scopes: [], expiresAt: Date.now() / 1000 + 60 };
  } };
  app.all(path, requireBearerAuth({ verifier,
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(url) }), express.json(),
  (asked, answer) => {
    if (asked.body?.method === 'initialize') answer.set('Mcp-Session-Id', `of-${name}`);
    answer.json({ jsonrpc: '2.0', id: asked.body?.id ?? null,
      result: asked.body?.method === 'initialize' ? { protocolVersion: '2025-06-18',
        capabilities: {}, serverInfo: { name, version: '1' } } : {} });
  });
  return url.href;
}

// What DNS and a proxy that ends TLS do: every name leads to the gateway and stays in Host.
const named = (limpet, seen = []) => async (input, init = {}) => {
  const url = new URL(input);
  seen.push(url.href);
  const answer = await send(`http://127.0.0.1:${limpet.port}${url.pathname}${url.search}`,
    { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), host: url.host } });
  return new Response(answer.text, { status: answer.status, headers: answer.rawHeaders });
};

suite('public names', () => {
  test('AUT-01, AUT-03 challenge and metadata name what the client used', async t => {
    const replicas = [await guarded(t, 'r1'), await guarded(t, 'r2')];
    const publicUrls = ['https://a.example/team/mcp', 'https://b.example/mcp'];
    const limpet = await gateway(t, { replicas, server: { public_url: publicUrls } });
    for (const url of publicUrls) {
      const fetch = named(limpet);
      const host = new URL(url).host;
      const refused = await post(limpet.url, initialize(0), { host });
      assert.equal(refused.status, 401);
      assert.doesNotMatch(refused.rawHeaders.join(), /127\.0\.0\.1/);
      const { resourceMetadataUrl } = extractWWWAuthenticateParams(
        new Response('', { status: 401, headers: refused.rawHeaders }));
      assert.equal(resourceMetadataUrl.href, new URL(WELL_KNOWN + new URL(url).pathname, url).href);
      // The official client: by the challenge, and by the well-known path alone.
      for (const hint of [{ resourceMetadataUrl }, {}]) {
        const metadata = await discoverOAuthProtectedResourceMetadata(url, hint, fetch);
        assert.equal(metadata.resource, url);
        assert.deepEqual(metadata.authorization_servers, [ISSUER]);
        assert.equal((await selectResourceURL(url, {}, metadata)).href, url);
      }
    }
    // A lost session without credentials: the gateway repeats the challenge by itself.
    const again = await post(limpet.url, request(1, 'ping'),
      { host: 'b.example', [SESSION]: 'gone' });
    assert.equal(again.status, 401);
    assert.match(again.headers['www-authenticate'],
      /resource_metadata="https:\/\/b\.example\/\.well-known\/oauth-protected-resource\/mcp"/);
  });

  test('AUT-03 another Host is refused, and nowhere said back', async t => {
    const limpet = await gateway(t, { replicas: [await guarded(t, 'r1')],
      flags: ['--public-url', 'https://a.example/mcp', '--public-url', 'https://b.example/mcp'] });
    for (const path of ['/mcp', `${WELL_KNOWN}/mcp`]) {
      const answer = await send(limpet.at(path), { headers: { host: 'c.example' } });
      assert.equal(answer.status, 403);
      assert.doesNotMatch(answer.text + answer.rawHeaders.join(), /[abc]\.example/);
    }
    // The loopback names of a loopback listener stay; they see the first public name.
    const local = await post(limpet.url, initialize(0));
    assert.equal(local.status, 401);
    assert.match(local.headers['www-authenticate'], /"https:\/\/a\.example\//);
  });

  test('AUT-03 a session made under one name is served under the other', async t => {
    const replicas = [await guarded(t, 'r1'), await guarded(t, 'r2')];
    const limpet = await gateway(t, { replicas,
      server: { public_url: ['https://a.example/mcp', 'https://b.example/mcp'] } });
    for (let i = 0; i < 4; i++) {
      const opened = await post(limpet.url, initialize(0), { ...good, host: 'a.example' });
      assert.equal(opened.status, 200, opened.text);
      const used = await post(limpet.url, request(1, 'ping'),
        { ...good, host: 'b.example', [SESSION]: opened.headers[SESSION] });
      assert.equal(used.status, 200, used.text);
    }
  });

  test('AUT-02 two servers: each metadata path answers for its own; others are JSON 404s', async t => {
    const [a, b] = [await guarded(t, 'a'), await guarded(t, 'b')];
    const servers = [{ name: 'a', path: '/team/a/mcp', replicas: [a] },
      { name: 'b', path: '/team/b/mcp', replicas: [b] }];
    const limpet = await gateway(t, { servers });
    for (const [path, inner, name] of [['/team/a/mcp', a, 'a'], ['/team/b/mcp', b, 'b']]) {
      const answer = await send(limpet.at(WELL_KNOWN + path));
      assert.equal(answer.status, 200);
      assert.equal(answer.json.resource_name, name);
      assert.equal(answer.json.resource, inner, 'untouched without public_url');
      assert.equal(answer.headers['access-control-allow-origin'], '*');
      const preflight = await open(limpet.at(WELL_KNOWN + path), { method: 'OPTIONS',
        headers: { origin: 'http://localhost:3000', 'access-control-request-method': 'GET' } });
      assert.equal(preflight.status, 204);
    }
    for (const path of [WELL_KNOWN, `${WELL_KNOWN}/team/c/mcp`, `${WELL_KNOWN}s/team/a/mcp`]) {
      const answer = await send(limpet.at(path));
      assert.equal(answer.status, 404);
      assert.match(answer.headers['content-type'], /^application\/json/);
    }
  });

  test('AUT-02 the authorization server that a server still is itself', async t => {
    const limpet = await gateway(t, { replicas: [await guarded(t, 'r1')],
      flags: ['--public-url', 'https://a.example/mcp'] });
    // The SDK serves this one at the place alone.
    const metadata = await discoverAuthorizationServerMetadata('https://a.example',
      { fetchFn: named(limpet) });
    assert.equal(metadata.issuer, ISSUER);
    const root = await send(limpet.at(WELL_KNOWN), { headers: { host: 'a.example' } });
    assert.equal(root.status, 404, 'the only server has no document there');
  });

  test('a challenge of an address that clients do not use is told in the log, once', async t => {
    const limpet = await gateway(t, { replicas: [await guarded(t, 'r1')],
      server: { hosts: ['a.example'] } });
    for (let i = 0; i < 3; i++) await post(limpet.url, initialize(i), { host: 'a.example' });
    const told = limpet.proc.log.split('\n').filter(line => line.includes('set public_url'));
    assert.equal(told.length, 1, limpet.proc.log);
    assert.match(told[0], /server default: its challenge sends clients to http:\/\/127\.0\.0\.1:\d+/);
  });
});
