// The cookie jar of `limpet connect`, driven by the official SDK's stdio client: [C6] to the letter on
// both transports, behind a naive proxy and behind HAProxy; [C5] by byte capture with everything
// fixed but the jar; cases COO-01 to COO-07 as far as they are the client's.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import path from 'node:path';
import { suite, test } from 'node:test';
import { byHand } from '../system/lib/bridge.mjs';
import { until } from '../system/lib/flow.mjs';
import { folder } from '../system/lib/gateway.mjs';
import { host } from '../system/lib/host.mjs';
import { INFO, json, played, result } from '../system/lib/played.mjs';
import { rawAnswer, rawPeer } from '../system/lib/raw.mjs';
import { AFFINITY, balancer, haproxy } from '../system/lib/sticky.mjs';
import { Authority } from '../system/lib/tls.mjs';

const QUIET = '--no-notification-stream';
const LEGACY = ['--era', 'legacy'];
const LOST = 'Error POSTing to endpoint (HTTP 404): {"error":"Session not found"}';
const TRANSPORTS = [['streamable-http', '/mcp', 5], ['sse', '/sse', 4]];

for (const [what, begin] of [['a naive proxy', balancer], ['HAProxy', haproxy]]) {
  suite(`[C6] two pods behind ${what}`, () => {
    for (const [transport, where, count] of TRANSPORTS) {
      const flags = [QUIET, '--transport', transport];

      test(`${transport}, off: tools/list fails with what the server said`, async t => {
        const proxy = await begin(t);
        // With old SSE initialize is a POST with a session already: it fails in the same way.
        const fails = transport === 'sse'
          ? host(t, proxy.url(where), flags)
          : host(t, proxy.url(where), flags).then(({ client }) => {
            assert.match(client.getServerVersion().name, /^pod-[ab]$/, 'initialize works');
            return client.listTools();
          });
        await assert.rejects(fails, error => error.message.includes(LOST));
      });

      test(`${transport}, on: one pod for every request, and the list is exactly ping`, async t => {
        const proxy = await begin(t);
        const pods = new Set();
        for (let i = 0; i < 4; i++) {
          proxy.log.length = 0;
          const { client, seen } = await host(t, proxy.url(where), [...flags, '--cookie-jar']);
          const { tools } = await client.listTools();
          assert.deepEqual(tools.map(tool => tool.name), ['ping']);
          await client.close();
          await until(() => proxy.log.length >= count, 3000, `${count} requests in the log`);
          assert.equal(new Set(proxy.log.map(row => row.pod)).size, 1, JSON.stringify(proxy.log));
          pods.add(proxy.log[0].pod);
          assert.deepEqual(seen.errors, []);
        }
        assert.equal(pods.size, 2, 'each connection has a jar of its own');
      });
    }
  });
}

// --- [C5] ---

// A server by raw bytes, always the same; every byte that comes is kept in `bytes`.
async function recorder(t, transport, cookie) {
  const set = cookie ? { 'Set-Cookie': `${AFFINITY}=pod-1; Path=/` } : {};
  const values = { initialize: INFO, 'tools/list': { tools: [] }, 'tools/call': { content: [] } };
  const peer = await rawPeer(t, async (connection, request) => {
    const { id, method } = request.body ? JSON.parse(request.body) : {};
    const value = values[method];
    const message = value && JSON.stringify({ jsonrpc: '2.0', id, result: value });
    if (transport === 'sse' && request.target === '/sse') {
      peer.stream = connection;
      return connection.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n' +
        `${cookie ? `Set-Cookie: ${AFFINITY}=pod-1\r\n` : ''}\r\n` +
        'event: endpoint\ndata: /messages?sessionId=S-1\n\n');
    }
    if (transport === 'sse') {
      await connection.send(rawAnswer(202, set));
      return message && peer.stream.send(`data: ${message}\n\n`);
    }
    if (request.method === 'GET') return connection.send(rawAnswer(405, { Allow: 'POST', ...set }));
    return connection.send(message
      ? rawAnswer(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'S-1', ...set }, message)
      : rawAnswer(method ? 202 : 200, set));
  });
  return peer;
}

// One session, one message after the other; what the server got, in order, as it came.
async function capture(t, transport, { cookie, jar, flags = [] }) {
  const peer = await recorder(t, transport, cookie);
  const url = peer.url.replace('/mcp', transport === 'sse' ? '/sse' : '/mcp');
  const bridge = byHand(t, url, [...LEGACY, '--transport', transport, ...flags,
    ...(jar ? ['--cookie-jar'] : [])]);
  await bridge.open();
  await until(() => peer.requests.length >= 3, 3000, 'GET, initialize, initialized');
  assert.ok((await bridge.ask('tools/list')).result);
  assert.ok((await bridge.tool('x', { größe: '1' })).result);
  assert.equal(await bridge.close(), 0, bridge.said);
  return peer.requests.map(request => `${request.head}\r\n\r\n${request.body}`
    .replaceAll(String(peer.port), 'PORT'));
}

suite('[C5] byte for byte', () => {
  for (const [transport] of TRANSPORTS) {
    test(`COO-01 ${transport}: only the jar differs, and only by its line`, async t => {
      const plain = await capture(t, transport, { cookie: false, jar: false });
      assert.ok(plain.length >= 5);
      assert.ok(plain.every(text => !/^cookie:/im.test(text)));
      assert.deepEqual(await capture(t, transport, { cookie: true, jar: false }), plain, 'off');
      assert.deepEqual(await capture(t, transport, { cookie: false, jar: true }), plain, 'empty');
      const pinned = await capture(t, transport, { cookie: true, jar: true });
      const line = `Cookie: ${AFFINITY}=pod-1\r\n`;
      assert.equal(pinned[0], plain[0]);
      for (const text of pinned.slice(1)) assert.equal(text.split(line).length, 2, text);
      assert.deepEqual(pinned.map(text => text.replace(line, '')), plain);
    });

    test(`COO-01 ${transport}: one Cookie line with the user's own and the jar's`, async t => {
      const flags = ['--header', 'Cookie: k=v'];
      const own = await capture(t, transport, { cookie: true, jar: false, flags });
      for (const text of own) assert.match(text, /\r\nCookie: k=v\r\n/);
      const [first, ...rest] = await capture(t, transport, { cookie: true, jar: true, flags });
      assert.equal(first, own[0]);
      for (const text of rest) {
        assert.deepEqual(text.match(/^cookie:.*$/gim), [`Cookie: k=v; ${AFFINITY}=pod-1`]);
      }
      assert.ok(transport === 'sse' || ['GET', 'DELETE'].every(method =>
        rest.some(text => text.startsWith(method))), 'GET and DELETE too');
    });
  }
});

// --- cookies, case by case ---

// A server that sets what `sets(n)` says with the answer to the n-th tools/call, from 1; the Cookie
// of each request is in `cookies`.
async function setting(t, sets, options = {}) {
  let count = 0;
  const server = await played(t, (method, message, { response }) => {
    if (method !== 'tools/call') return undefined;
    response.setHeader('set-cookie', sets[count++] ?? []);
    return { content: [] };
  }, options);
  const bridge = byHand(t, server.url, [...LEGACY, QUIET, '--cookie-jar', ...(options.flags ?? [])]);
  assert.ok((await bridge.open()).result, bridge.said);
  // The Cookie that the request after the next answer carries.
  const next = async () => {
    await bridge.tool('set');
    await bridge.ask('ping');
    return server.asked('ping').at(-1).headers.cookie;
  };
  return { server, bridge, next };
}

suite('what the jar keeps', () => {
  test('COO-01 the limits, and lines that are none', async t => {
    const fits = `big=${'v'.repeat(4092)}`;
    const { next } = await setting(t, [[fits], [`${fits}x`.replace('big', 'bog')],
      ['=x', 'novalue', ';', 'two=1', 'two=2']]);
    assert.equal(await next(), fits);
    assert.equal(await next(), fits);
    assert.equal(await next(), `${fits}; two=2`);
  });

  test('COO-01 fifty of fifty-one, the first is gone', async t => {
    const names = Array.from({ length: 51 }, (_, i) => `n${i}=1`);
    const { next } = await setting(t, [names]);
    const sent = (await next()).split('; ');
    assert.deepEqual(sent.sort(), names.slice(1).sort());
  });

  test('COO-04 renewed by 200, 202, 405 and the head of a stream that stays open', async t => {
    let stream;
    const server = await played(t, (method, message, { request, response }) => {
      const set = value => response.setHeader('set-cookie', `LB=${value}; Path=/`);
      if (method === 'initialize') set(1);
      if (method === 'notifications/initialized') set(2);
      if (request.method === 'GET') set(3);
      if (method !== 'tools/call') return message?.id === undefined ? undefined : {};
      set(4);
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      stream = () => response.end(`data: ${JSON.stringify(
        { jsonrpc: '2.0', id: message.id, result: { content: [] } })}\n\n`);
      return undefined;
    });
    const bridge = byHand(t, server.url, [...LEGACY, '--cookie-jar']);
    await bridge.open();
    await until(() => server.seen.some(row => row.http === 'GET'), 3000, 'GET');
    await bridge.ask('tools/list');
    const open = bridge.tool('x');
    await until(() => stream, 3000, 'the stream');
    await bridge.ask('ping');
    stream();
    await open;
    const cookie = test => server.seen.find(test).headers.cookie;
    assert.equal(cookie(row => row.message?.method === 'initialize'), undefined);
    assert.equal(cookie(row => row.message?.method === 'notifications/initialized'), 'LB=1');
    assert.equal(cookie(row => row.http === 'GET'), 'LB=2');
    assert.equal(cookie(row => row.message?.method === 'tools/call'), 'LB=3');
    assert.equal(cookie(row => row.message?.method === 'ping'), 'LB=4');
    for (const row of server.seen) assert.ok((row.headers.cookie ?? '').split('LB=').length <= 2);
  });

  test('COO-05 two entries on one host and port: each sends its own; a new session none', async t => {
    let lost = false;
    const server = await played(t, (method, message, { request, response }) => {
      response.setHeader('set-cookie', `SRV=${request.url.slice(1)}`);
      if (method === 'initialize') return void result(response, message, INFO, { 'mcp-session-id': 's' });
      if (lost && method === 'tools/list') return lost = false, void response.writeHead(404).end();
      return message?.id === undefined ? undefined : {};
    });
    const dir = folder(t);
    const entry = where => ({ type: 'http', url: server.url.replace('mcp', where), cookieJar: true });
    writeFileSync(path.join(dir, 'mcp.json'), JSON.stringify(
      { mcpServers: { one: entry('one'), two: entry('two') } }));
    const [one, two] = ['one', 'two'].map(name =>
      byHand(t, name, [...LEGACY, QUIET], { cwd: dir }));
    for (const bridge of [one, two, one, two]) {
      if (!bridge.find('open')) await bridge.open();
      await bridge.ask('tools/list');
    }
    for (const row of server.seen) {
      const expected = row.message?.method === 'initialize' ? undefined : `SRV=${row.url.slice(1)}`;
      assert.equal(row.headers.cookie, expected);
    }
    lost = true;
    assert.ok((await one.ask('tools/list')).result);
    assert.equal(server.asked('initialize').length, 3);
    assert.equal(server.asked('initialize').at(-1).headers.cookie, undefined, 'an empty jar');
  });

  test('COO-06 zero, negative, unreadable and past', async t => {
    const { bridge, next } = await setting(t, [['LB=a', 'LBX=b'],
      ['LB=; Max-Age=0; Expires=Fri, 01 Jan 2037 00:00:00 GMT'],
      ['LB=c; Expires=Fri, 01 Jan 1999 00:00:00 GMT; Max-Age=60'], ['LB=d; Max-Age=-5'],
      ['LB=e; Max-Age=soon'], ['LB=f; Max-Age=1'], []]);
    const pairs = async () => (await next())?.split('; ').sort();
    assert.deepEqual(await pairs(), ['LB=a', 'LBX=b']);
    assert.deepEqual(await pairs(), ['LBX=b']);
    assert.deepEqual(await pairs(), ['LB=c', 'LBX=b']);
    assert.deepEqual(await pairs(), ['LBX=b']);
    assert.deepEqual(await pairs(), ['LB=e', 'LBX=b']);
    await bridge.tool('set');
    await new Promise(resolve => setTimeout(resolve, 2000));
    assert.deepEqual(await pairs(), ['LBX=b'], 'two seconds later');
  });

  const PREFIXED = ['__Host-a=1; Secure; Path=/', '__Host-b=1; Path=/',
    '__Host-c=1; Secure; Path=/; Domain=a.example.test', '__Host-d=1; Secure; Path=/x',
    '__Secure-e=1; Secure', '__Secure-f=1'];
  test('COO-07 names that promise something: over https, and over http', async t => {
    const authority = new Authority(t);
    const secure = await setting(t, [PREFIXED], { create: https.createServer,
      options: authority.issue('IP:127.0.0.1'), flags: ['--cacert', authority.file] });
    assert.deepEqual((await secure.next()).split('; ').sort(), ['__Host-a=1', '__Secure-e=1']);
    const plain = await setting(t, [PREFIXED]);
    assert.equal(await plain.next(), undefined);
  });

  for (const [scheme, sent] of [['http', 'AWSALB=abc'], ['https', 'AWSALB=abc; AWSALBCORS=abc']]) {
    test(`COO-02 old SSE over ${scheme}: the cookies of the stream go with the POSTs`, async t => {
      const authority = new Authority(t);
      let stream;
      const server = await played(t, (method, message, { request, response }) => {
        if (request.method === 'GET') {
          response.writeHead(200, { 'content-type': 'text/event-stream',
            'set-cookie': ['AWSALB=abc; Path=/', 'AWSALBCORS=abc; Path=/; Secure'] });
          response.write('event: endpoint\ndata: /messages?id=1\n\n');
          stream = response;
          return;
        }
        response.writeHead(202).end();
        const value = method === 'initialize' ? INFO : {};
        if (message.id !== undefined) {
          stream.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: message.id, result: value })}\n\n`);
        }
      }, scheme === 'https'
        ? { create: https.createServer, options: authority.issue('IP:127.0.0.1') }
        : { create: http.createServer });
      const bridge = byHand(t, server.url,
        ['--transport', 'sse', '--cookie-jar', '--cacert', authority.file]);
      assert.ok((await bridge.open()).result, bridge.said);
      assert.ok((await bridge.ask('tools/list')).result);
      const [get, ...posts] = server.seen;
      assert.equal(get.headers.cookie, undefined);
      assert.ok(posts.length >= 3);
      for (const post of posts) assert.equal(post.headers.cookie, sent);
    });
  }

  test('COO-01 the log names a cookie and never its value, sent or set or dropped', async t => {
    const log = path.join(folder(t), 'log');
    const { next } = await setting(t, [['LB=s3cret-1', 'S=s3cret-2; Secure', 'E=s3cret-3; Max-Age=0']],
      { flags: ['--log-file', log, '--header', 'Cookie: mine=s3cret-4'] });
    assert.equal(await next(), 'mine=s3cret-4; LB=s3cret-1');
    const text = readFileSync(log, 'utf8');
    assert.doesNotMatch(text, /s3cret/);
    assert.match(text, /> Cookie: mine=#[0-9a-f]{8}; LB=#[0-9a-f]{8}\n/i);
    assert.match(text, /< set-cookie: LB=#[0-9a-f]{8}/i);
    assert.match(text, / the cookie S .*/);
  });
});
