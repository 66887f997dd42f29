// The message address of old SSE (`<sse_path>?lp=TOKEN`) over real sockets: what a client may add to
// it, and what it is for. The replica is a raw peer that shows every byte that reached it.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { gateway } from './lib/gateway.mjs';
import { openEvents, send } from './lib/http.mjs';
import { chunk, rawAnswer, rawPeer } from './lib/raw.mjs';
import { assertLost, assertRpcError, initialize, post, request } from './lib/rpc.mjs';

const STREAM_HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n' +
  'Transfer-Encoding: chunked\r\n\r\n';

// A gateway over a raw old-SSE replica; `endpoint` is what it announces, `answer` what a POST gets.
async function oldGateway(t, { endpoint = '/messages?sessionId=u1', server, flags,
  answer = () => rawAnswer(202, {}, 'Accepted') } = {}) {
  const peer = await rawPeer(t, (connection, seen) => connection.send(seen.method === 'GET'
    ? STREAM_HEAD + chunk(`event: endpoint\ndata: ${endpoint}\n\n`) : answer(seen)));
  const limpet = await gateway(t, { replicas: [peer.url], flags,
    server: { sse_path: '/old/sse', sse_upstream: '/sse', ...server } });
  return { peer, limpet };
}

async function openStream(t, limpet, path = '/old/sse') {
  const stream = await openEvents(limpet.at(path), { headers: { accept: 'text/event-stream' } });
  t.after(() => stream.close());
  const { data } = await stream.events.until(r => r.events[0]);
  return { stream, address: new URL(data, limpet.at(path)) };
}

suite('what a client adds to the query', () => {
  test('no second session key reaches the replica, whatever its spelling', async t => {
    const { peer, limpet } = await oldGateway(t);
    const { address } = await openStream(t, limpet);
    for (const added of ['sessionId=X', 'sessionid=X', 'SESSIONID=X', 'session%49d=X',
      '%73essionId=X', 'sessionId[]=X', 'sessionId%5B0%5D=X', 'sessionId', 'a=1&sessionId=X&b=2']) {
      const answer = await post(`${address}&${added}`, request(1, 'ping'));
      assert.equal(answer.status, 202, added);
      const kept = added.startsWith('a=1') ? '&a=1&b=2' : '';
      assert.equal(peer.requests.at(-1).target, `/messages?sessionId=u1${kept}`, added);
      const before = `${address.pathname}?${added}&lp=${address.searchParams.get('lp')}`;
      await post(limpet.at(before), request(1, 'ping'));
      assert.equal(peer.requests.at(-1).target, `/messages?sessionId=u1${kept}`, added);
    }
  });

  test('members of other names stay, in their order', async t => {
    const { peer, limpet } = await oldGateway(t,
      { endpoint: '/messages?tenant=t%201&sessionId=u1&x=2' });
    const { address } = await openStream(t, limpet);
    assert.equal(address.searchParams.get('tenant'), 't 1');
    await post(`${address}&session=5&y=%26`, request(1, 'ping'));
    assert.equal(peer.requests.at(-1).target,
      '/messages?sessionId=u1&tenant=t%201&x=2&session=5&y=%26');
  });

  test('the token twice is no token', async t => {
    const { peer, limpet } = await oldGateway(t);
    const { address } = await openStream(t, limpet);
    const before = peer.requests.length;
    const answer = await post(`${address}&lp=${address.searchParams.get('lp')}`, request(1, 'ping'));
    assertRpcError(answer, { status: 400, id: 1 });
    assert.equal(peer.requests.length, before);
  });
});

suite('other methods than POST', () => {
  test('GET and DELETE of a message address: 405 with Allow: POST, and no stream is opened', async t => {
    const { peer, limpet } = await oldGateway(t);
    const { address, stream } = await openStream(t, limpet);
    const before = peer.requests.length;
    for (const method of ['GET', 'DELETE', 'PUT', 'HEAD']) {
      const answer = await send(address, { method, headers: { accept: 'text/event-stream' } });
      assert.deepEqual([method, answer.status, answer.headers.allow], [method, 405, 'POST']);
    }
    assert.equal(peer.requests.length, before, 'no replica was asked');
    assert.equal(stream.events.end, undefined, 'the session goes on');
    assert.equal((await post(address, request(1, 'ping'))).status, 202);
  });

  test('... on a path that both transports share too', async t => {
    const { peer, limpet } = await oldGateway(t, { server: { sse_path: '/mcp' } });
    const { address } = await openStream(t, limpet, '/mcp');
    const before = peer.requests.length;
    const answer = await send(address, { headers: { accept: 'text/event-stream' } });
    assert.deepEqual([answer.status, answer.headers.allow], [405, 'POST']);
    assert.equal(peer.requests.length, before);
  });

  test('of a session that is lost they get the same 404 as a POST', async t => {
    const { limpet } = await oldGateway(t);
    const { address, stream } = await openStream(t, limpet);
    const forged = new URL(address);
    forged.searchParams.set('lp', `${address.searchParams.get('lp').slice(0, -3)}AAA`);
    for (const method of ['GET', 'DELETE']) assertLost(await send(forged, { method }));
    stream.close();
    await limpet.record(r => r.http_method === 'GET' && r.reason === 'client_left');
    assertLost(await post(address, request(7, 'ping')), 7);
    for (const method of ['GET', 'DELETE']) assertLost(await send(address, { method }));
  });

  test('the stream\'s own path takes GET only', async t => {
    const { limpet } = await oldGateway(t);
    for (const method of ['DELETE', 'PUT']) {
      const answer = await send(limpet.at('/old/sse'), { method });
      assert.deepEqual([method, answer.status, answer.headers.allow], [method, 405, 'GET']);
    }
    assertRpcError(await post(limpet.at('/old/sse'), initialize(1)), { status: 400, id: 1 });
  });

  test('a preflight reaches the path that it asks about, and no token goes along', async t => {
    const { peer, limpet } = await oldGateway(t, { answer: () => rawAnswer(204, { Allow: 'POST' }) });
    const { address } = await openStream(t, limpet);
    const ask = target => send(limpet.at(target), { method: 'OPTIONS' });
    assert.equal((await ask('/old/sse')).status, 204);
    assert.equal(peer.requests.at(-1).target, '/sse');
    assert.equal((await ask(address.pathname + address.search)).status, 204);
    assert.equal(peer.requests.at(-1).target, '/messages?sessionId=u1');
    assert.equal((await ask('/old/sse?a=1&lp=nothing')).status, 204);
    assert.equal(peer.requests.at(-1).target, '/sse?a=1');
    assert.equal((await ask('/mcp')).status, 204);
    assert.equal(peer.requests.at(-1).target, '/mcp');
  });
});

suite('a message whose connection breaks', () => {
  test('is an error that the client sees: its answer would come on the stream', async t => {
    const peer = await rawPeer(t, async (connection, seen) => {
      if (seen.method !== 'GET') return connection.reset();
      return connection.send(
        STREAM_HEAD + chunk('event: endpoint\ndata: /messages?sessionId=u1\n\n'));
    });
    const limpet = await gateway(t, { replicas: [peer.url],
      server: { sse_path: '/old/sse', sse_upstream: '/sse' } });
    const { address } = await openStream(t, limpet, '/old/sse');
    const answer = await post(address, request(5, 'tools/call', { name: 'x' }));
    assertRpcError(answer, { status: 502, code: -32603, id: 5 });
  });
});
