// What comes too slowly or stops half-way, over real sockets with short limits: who drips a request
// is answered and cut, and nobody else notices.
import assert from 'node:assert/strict';
import http from 'node:http';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from './lib/flow.mjs';
import { gateway } from './lib/gateway.mjs';
import { send } from './lib/http.mjs';
import { freePort } from './lib/ports.mjs';
import { chunk, parseMessage, rawAnswer, rawClient, rawExchange, rawPeer, requestText } from
  './lib/raw.mjs';
import { POST_HEADERS, Session } from './lib/rpc.mjs';

const JSON_TYPE = { 'Content-Type': 'application/json' };
const RESULT = '{"jsonrpc":"2.0","id":1,"result":{}}';
const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const MEGABYTE = 1 << 20;

// A gateway with `options` over one raw replica, and a session there; other requests are answered by
// `answer(connection, request)`.
async function overRaw(t, options, answer = c => c.send(rawAnswer(200, JSON_TYPE, RESULT))) {
  const peer = await rawPeer(t, (connection, seen) => {
    if (seen.body.includes('"initialize"')) {
      return connection.send(rawAnswer(200, { ...JSON_TYPE, 'Mcp-Session-Id': 'u1' }, RESULT));
    }
    if (seen.body.includes('"notifications/')) return connection.send(rawAnswer(202, {}));
    return answer(connection, seen);
  });
  const limpet = await gateway(t, { replicas: [peer.url], ...options });
  return { peer, limpet, session: await Session.open(limpet.url) };
}

// Sends `piece` every 100 ms until the connection ends; tells how long that took.
async function drip(connection, piece, within = 8000) {
  const began = performance.now();
  while (!connection.end) {
    assert.ok(performance.now() - began < within, 'a request that drips is never cut');
    await connection.send(piece);
    await sleep(100);
  }
  return performance.now() - began;
}

async function assertTimedOut(limpet, connection, took) {
  const answer = parseMessage(connection.text);
  assert.equal(answer?.status, 408, connection.text);
  assert.equal(answer.header('connection'), 'close');
  assert.equal(JSON.parse(answer.body).error.message, 'the request did not arrive in time');
  assert.ok(took > 900 && took < 3500, `cut after ${took} ms`);
  const record = await limpet.record(r => r.reason === 'request_timeout');
  assert.equal(record.status, 408);
  assert.match((await limpet.admin('/metrics')).text,
    /^limpet_exchanges_total\{reason="request_timeout"\} 1$/m);
}

suite('a request that does not arrive', () => {
  const dripping = { config: { timeouts: { request: '1s' } } };

  test('a head that drips gets 408 at its limit', async t => {
    const { limpet, session } = await overRaw(t, dripping);
    const connection = await rawClient(limpet.port, 'POST /mcp HTTP/1.1\r\nHost: a\r\nX: ');
    const took = await drip(connection, 'x');
    await assertTimedOut(limpet, connection, took);
    assert.equal((await session.ask('ping')).status, 200);
  });

  test('a body that drips gets 408 at its limit', async t => {
    const { limpet, session, peer } = await overRaw(t, dripping);
    const seen = peer.requests.length;
    const connection = await rawClient(limpet.port,
      requestText('POST', '/mcp', { ...JSON_TYPE, 'Content-Length': 500 }));
    const took = await drip(connection, ' ');
    await assertTimedOut(limpet, connection, took);
    assert.equal(peer.requests.length, seen);
    assert.equal((await session.ask('ping')).status, 200);
  });

  test('a large body may take many times the limit while it makes progress', async t => {
    const { limpet, session, peer } = await overRaw(t,
      { config: { timeouts: { request: '500ms' } } });
    const body = PING + ' '.repeat(MEGABYTE);
    const text = requestText('POST', '/mcp', { ...JSON_TYPE, 'Mcp-Session-Id': session.id }, body);
    const connection = await rawClient(limpet.port);
    for (let at = 0; at < text.length; at += 40_000) {
      await connection.send(text.slice(at, at + 40_000));
      await sleep(100);
    }
    assert.equal((await connection.take()).status, 200);
    assert.equal(peer.requests.at(-1).body.length, body.length);
  });
});

suite('a replica that stands still', () => {
  const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{';
  const silent = { server: { timeouts: { first_byte: '1s' } } };

  test('an answer that stops half-way is cut, and its connection closed', async t => {
    const { limpet, session, peer } = await overRaw(t, silent, c => c.send(HEAD));
    const began = performance.now();
    const connection = await rawClient(limpet.port, requestText('POST', '/mcp',
      { ...JSON_TYPE, 'Mcp-Session-Id': session.id }, PING));
    await connection.ended();
    const took = performance.now() - began;
    assert.ok(took > 900 && took < 3500, `cut after ${took} ms`);
    assert.match(connection.text, /^HTTP\/1\.1 200 .*\r\n\r\n\{$/s);
    await peer.connections.at(-1).ended();
    await limpet.record(r => r.reason === 'upstream_stalled' && r.status === 200);
    assert.match((await limpet.admin('/metrics')).text,
      /^limpet_exchanges_total\{reason="upstream_stalled"\} 1$/m);
  });

  test('an event stream of the same replica may be silent for longer', async t => {
    const { session } = await overRaw(t, silent, async c => {
      await c.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n' +
        'Transfer-Encoding: chunked\r\n\r\n');
      await sleep(2500);
      await c.send(`${chunk(`data: ${RESULT}\n\n`)}0\r\n\r\n`);
    });
    const answer = await session.ask('ping');
    assert.equal(answer.status, 200);
    assert.match(answer.text, /"result"/);
  });

  test('a replica that does not read a large body is given up with 504', async t => {
    const { limpet, session, peer } = await overRaw(t,
      { server: { timeouts: { stalled: '1s' }, body_limit: '64MiB' } });
    for (const connection of peer.connections) connection.destroy();
    peer.server.pauseOnConnect = true;
    const body = PING + ' '.repeat(32 * MEGABYTE);
    const connection = await rawClient(limpet.port);
    connection.send(requestText('POST', '/mcp',
      { ...JSON_TYPE, 'Mcp-Session-Id': session.id }, body));
    const answer = await connection.until(parseMessage, 8000);
    assert.equal(answer.status, 504);
    await limpet.record(r => r.reason === 'upstream_stalled' && r.status === 504);
    assert.equal((await limpet.admin('/live')).status, 200);
  });
});

suite('a body that is held whole before it is routed', () => {
  const BODY = Buffer.from(PING + ' '.repeat(16 * MEGABYTE - PING.length));

  // Over what the kernel and a link take: the rest waits with the request.
  for (const isEarly of [false, true]) {
    const what = isEarly ? 'has answered in part before it reads' : 'reads late';
    test(`16 MiB reach a replica that ${what}`, async t => {
      const server = http.createServer(async (request, response) => {
        response.writeHead(200, { ...JSON_TYPE, 'Content-Length': RESULT.length });
        if (isEarly) response.write(RESULT.slice(0, 5));
        await sleep(500);
        const chunks = [];
        for await (const chunk of request) chunks.push(chunk);
        assert.ok(Buffer.concat(chunks).equals(BODY));
        response.end(isEarly ? RESULT.slice(5) : RESULT);
      });
      const port = await freePort();
      await new Promise(resolve => server.listen(port, '127.0.0.1', resolve));
      t.after(() => { server.closeAllConnections(); server.close(); });
      const limpet = await gateway(t, { replicas: [`http://127.0.0.1:${port}/mcp`],
        server: { body_limit: '16MiB' } });
      const answer = await send(limpet.url, { method: 'POST', body: BODY,
        headers: { ...POST_HEADERS, 'content-length': BODY.length } });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.text, RESULT);
    });
  }
});

suite('a request that takes too much', () => {
  const DECLARED = 4 * MEGABYTE;
  const declaring = (bytes, body) =>
    `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${bytes}\r\n\r\n${body}`;

  test('what a body declares takes no memory, only what has come does', async t => {
    const COUNT = 400;
    const { limpet, session } = await overRaw(t);
    const before = limpet.proc.memory();
    const all = await Promise.all(Array.from({ length: COUNT }, () =>
      rawClient(limpet.port, declaring(DECLARED, ' '.repeat(1000)))));
    assert.equal((await session.ask('ping')).status, 200);
    const grown = limpet.proc.memory() - before;
    assert.ok(grown < COUNT * 32_768, `memory grew by ${grown} bytes`);
    for (const connection of all) connection.destroy();
  });

  test('large bodies have a limit together: 503 over it, until they are gone', async t => {
    const { limpet, session } = await overRaw(t,
      { config: { large_bodies_limit: '1MiB' }, flags: ['--threads', '1'] });
    const held = await rawClient(limpet.port, declaring(DECLARED, ' '.repeat(3 * MEGABYTE)));
    const gauge = async () => Number(/^limpet_large_bodies_bytes (\d+)$/m
      .exec((await limpet.admin('/metrics')).text)[1]);
    await until(async () => await gauge() >= 3 * MEGABYTE, 3000, 'the body is held');
    const large = PING + ' '.repeat(100_000);
    const refused = await rawExchange(limpet.port, requestText('POST', '/mcp', JSON_TYPE, large));
    assert.equal(refused.status, 503);
    assert.equal(refused.header('retry-after'), '1');
    assert.equal(JSON.parse(refused.body).id, 1);
    await limpet.record(r => r.reason === 'over_capacity');
    await limpet.proc.says(/large_bodies_limit is reached/);
    assert.equal((await session.ask('ping')).status, 200, 'a small body');
    assert.equal((await session.post(large)).status, 200, 'one that is passed on while it comes');
    held.destroy();
    await until(async () => await gauge() === 0, 3000, 'the body is dropped');
    const again = await rawExchange(limpet.port, requestText('POST', '/mcp', JSON_TYPE, large));
    assert.equal(again.status, 400, 'read whole and judged: it lacks its session id');
  });
});
