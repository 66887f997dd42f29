// What comes too slowly or stops half-way, over real sockets with short limits: who drips a request
// is answered and cut, and nobody else notices.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gateway } from './lib/gateway.mjs';
import { parseMessage, rawAnswer, rawClient, rawPeer, requestText } from './lib/raw.mjs';
import { Session } from './lib/rpc.mjs';

const JSON_TYPE = { 'Content-Type': 'application/json' };
const RESULT = '{"jsonrpc":"2.0","id":1,"result":{}}';
const MEGABYTE = 1 << 20;

// A gateway with `config` over one raw replica, and a session there; other requests are answered by
// `answer(connection, request)`.
async function overRaw(t, config, answer = c => c.send(rawAnswer(200, JSON_TYPE, RESULT)), server) {
  const peer = await rawPeer(t, (connection, seen) => {
    if (seen.body.includes('"initialize"')) {
      return connection.send(rawAnswer(200, { ...JSON_TYPE, 'Mcp-Session-Id': 'u1' }, RESULT));
    }
    if (seen.body.includes('"notifications/')) return connection.send(rawAnswer(202, {}));
    return answer(connection, seen);
  });
  const limpet = await gateway(t, { replicas: [peer.url], config, server });
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
  test('a head that drips gets 408 at its limit', async t => {
    const { limpet, session } = await overRaw(t, { timeouts: { request: '1s' } });
    const connection = await rawClient(limpet.port, 'POST /mcp HTTP/1.1\r\nHost: a\r\nX: ');
    const took = await drip(connection, 'x');
    await assertTimedOut(limpet, connection, took);
    assert.equal((await session.ask('ping')).status, 200);
  });

  test('a body that drips gets 408 at its limit', async t => {
    const { limpet, session, peer } = await overRaw(t, { timeouts: { request: '1s' } });
    const seen = peer.requests.length;
    const connection = await rawClient(limpet.port,
      requestText('POST', '/mcp', { ...JSON_TYPE, 'Content-Length': 500 }));
    const took = await drip(connection, ' ');
    await assertTimedOut(limpet, connection, took);
    assert.equal(peer.requests.length, seen);
    assert.equal((await session.ask('ping')).status, 200);
  });

  test('a large body may take many times the limit while it makes progress', async t => {
    const { limpet, session, peer } = await overRaw(t, { timeouts: { request: '500ms' } });
    const body = `{"jsonrpc":"2.0","id":1,"method":"ping"}${' '.repeat(MEGABYTE)}`;
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
