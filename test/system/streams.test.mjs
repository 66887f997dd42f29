// Event streams: passed on at once and unbuffered, kept alive by comments between events, broken off
// where the upstream broke off, and bounded for a reader who does not read. Case codes: STR.
import assert from 'node:assert/strict';
import net from 'node:net';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from './lib/flow.mjs';
import { gateway } from './lib/gateway.mjs';
import { openEvents } from './lib/http.mjs';
import { chunk, parseMessage, rawAnswer, rawClient, rawPeer, requestText } from './lib/raw.mjs';
import { initialize, post, request, Session, SESSION, toolCall } from './lib/rpc.mjs';

const RESULT = '{"jsonrpc":"2.0","id":1,"result":{}}';
const STREAM_HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n' +
  'Transfer-Encoding: chunked\r\n\r\n';
const LAST = '0\r\n\r\n';
const event = data => `data: ${JSON.stringify(data)}\n\n`;
const message = n => event({ jsonrpc: '2.0', method: 'notifications/message', params: { n } });

// A gateway over a raw replica: `stream(connection)` plays every GET, `call(connection)` every POST
// but initialize and notifications.
async function overStream(t, { stream, call = () => {}, server, flags } = {}) {
  const peer = await rawPeer(t, (connection, seen) => {
    if (seen.method === 'GET') return stream(connection, seen);
    if (seen.method === 'DELETE') return connection.send(rawAnswer(200, {}));
    if (seen.body.includes('"initialize"')) {
      return connection.send(rawAnswer(200,
        { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'u1' }, RESULT));
    }
    if (seen.body.includes('notifications/')) return connection.send(rawAnswer(202, {}));
    return call(connection, seen);
  });
  const limpet = await gateway(t, { replicas: [peer.url], server, flags });
  const session = await Session.open(limpet.url);
  return { peer, limpet, session };
}

const rawGet = (limpet, session) => rawClient(limpet.port, requestText('GET', '/mcp',
  { Accept: 'text/event-stream', 'Mcp-Session-Id': session.id }));
const afterHead = text => text.slice(text.indexOf('\r\n\r\n') + 4);

suite('passed on at once', () => {
  test('STR-01 each event within 100 ms, and the head that keeps other hops from buffering', async t => {
    const sent = [];
    const { session } = await overStream(t, { async stream(connection) {
      await connection.send(STREAM_HEAD);
      for (let n = 0; n < 10; n++) {
        sent.push(performance.now());
        await connection.send(chunk(message(n)));
        await sleep(500);
      }
      await connection.send(LAST);
    } });
    const stream = await session.stream();
    assert.equal(stream.status, 200);
    assert.equal(stream.headers['content-type'], 'text/event-stream');
    assert.equal(stream.headers['x-accel-buffering'], 'no');
    assert.match(stream.headers['cache-control'], /no-cache/);
    assert.match(stream.headers['cache-control'], /no-transform/);
    assert.equal(stream.headers['content-length'], undefined);
    assert.equal(stream.headers['content-encoding'], undefined);
    assert.equal(await stream.events.ended(7000), 'end');
    assert.equal(stream.events.events.length, 10);
    for (const [n, { at }] of stream.events.events.entries()) {
      assert.ok(at - sent[n] < 100, `event ${n} took ${at - sent[n]} ms`);
    }
  });

  test('STR-05 the head comes on at once when the replica sends nothing else', async t => {
    const { session } = await overStream(t, { stream: c => c.send(STREAM_HEAD) });
    const began = performance.now();
    const stream = await session.stream();
    assert.equal(stream.status, 200);
    assert.ok(performance.now() - began < 100, `${performance.now() - began} ms`);
    stream.close();
  });

  test('STR-05 a replica that is slow with its head is waited for, others go on', async t => {
    const { session } = await overStream(t, { async stream(connection) {
      await sleep(2500);
      await connection.send(STREAM_HEAD);
    }, call: c => c.send(rawAnswer(200, { 'Content-Type': 'application/json' }, RESULT)) });
    const slow = session.stream();
    for (let i = 0; i < 10; i++) {
      const answer = await session.ask('ping');
      assert.equal(answer.status, 200);
      assert.ok(answer.ms < 300, `${answer.ms} ms`);
    }
    const stream = await slow;
    assert.equal(stream.status, 200);
    stream.close();
  });

  test('a POST answered as a stream with a length keeps its events and loses the length', async t => {
    const body = message(1) + event({ jsonrpc: '2.0', id: 1, result: {} });
    const { session } = await overStream(t, { call: c =>
      c.send(rawAnswer(200, { 'Content-Type': 'text/event-stream; charset=utf-8' }, body)) });
    const stream = await session.openPost(toolCall(1, 'x'));
    assert.equal(stream.headers['content-length'], undefined);
    assert.equal(await stream.events.ended(2000), 'end');
    assert.equal(stream.events.messages.length, 2);
  });
});

suite('comments', () => {
  const isComment = text => /^:[^\n]*\n\n$/.test(text);

  test('STR-02 a comment at once and then whenever the stream was silent', async t => {
    const { session } = await overStream(t, { stream: c => c.send(STREAM_HEAD),
      flags: ['--comment-every', '1s'] });
    const began = performance.now();
    const stream = await session.stream();
    await stream.events.until(r => r.chunks.length > 0, 1000);
    assert.ok(stream.events.chunks[0].at - began < 200);
    await sleep(4300);
    stream.close();
    const { chunks, events } = stream.events;
    assert.deepEqual(events, []);
    assert.ok(chunks.length >= 4 && chunks.length <= 7, `${chunks.length} pieces`);
    for (const [i, piece] of chunks.entries()) {
      assert.ok(isComment(piece.text), JSON.stringify(piece.text));
      if (i > 0) assert.ok(piece.at - chunks[i - 1].at < 1500, 'never silent for long');
    }
  });

  test('STR-02 by default the first comment comes at once and no second one soon', async t => {
    const { session } = await overStream(t, { stream: c => c.send(STREAM_HEAD) });
    const stream = await session.stream();
    await stream.events.until(r => r.comments.length === 1, 200);
    await sleep(1500);
    assert.equal(stream.events.comments.length, 1);
    stream.close();
  });

  test('STR-02 switched off: the bytes are the replica\'s', async t => {
    const body = ': mine\n\n' + message(1) + 'id: 7\r\ndata\r\n\r\n' + message(2);
    const { session } = await overStream(t, { server: { comment_every: 'off' },
      stream: c => c.send(STREAM_HEAD + chunk(body) + LAST) });
    const stream = await session.stream();
    await stream.events.ended(2000);
    assert.equal(stream.events.text, body);
  });

  test('STR-02 comments never fall into an event that comes in pieces', async t => {
    const pieces = ['id: 1\nda', 'ta: {"jsonrpc":"2.0",', '"method":"notifications/x"}', '\n', '\n'];
    const { session } = await overStream(t, { async stream(connection) {
      await connection.send(STREAM_HEAD);
      for (let round = 0; round < 2; round++) {
        for (const piece of pieces) {
          await connection.send(chunk(piece));
          await sleep(250);
        }
      }
      await connection.send(LAST);
    }, server: { comment_every: '100ms' } });
    const stream = await session.stream();
    await stream.events.ended(5000);
    assert.deepEqual(stream.events.events.map(e => [e.id, e.data]),
      [['1', '{"jsonrpc":"2.0","method":"notifications/x"}'],
        ['1', '{"jsonrpc":"2.0","method":"notifications/x"}']]);
    const whole = stream.events.text.replaceAll(/(?<=^|\n):[^\n]*\n\n/g, '');
    assert.equal(whole, pieces.join('').repeat(2), 'without the comments the bytes are the same');
    assert.ok(stream.events.comments.length >= 1);
  });
});

suite('broken off, never ended as if whole', () => {
  const CUT = {
    'a length of 1000, 400 bytes, reset': async c => {
      await c.send('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n' +
        `\r\n${'x'.repeat(400)}`);
      await sleep(100);
      c.reset();
    },
    'chunks without the last one, reset': async c => {
      await c.send('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n' +
        `Transfer-Encoding: chunked\r\n\r\n${chunk('x'.repeat(400))}`);
      await sleep(100);
      c.reset();
    },
    'chunks without the last one, closed': async c => {
      await c.send('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n' +
        `Transfer-Encoding: chunked\r\n\r\n${chunk('x'.repeat(400))}`);
      await sleep(100);
      c.close();
    },
    'an event stream in the midst of an event': async c => {
      await c.send(STREAM_HEAD + chunk(message(1)) + chunk('data: {"half":'));
      await sleep(100);
      c.reset();
    },
    'a chunk size that is none': async c => {
      await c.send(`${STREAM_HEAD}${chunk(message(1))}${chunk('data: {"half":')}zz\r\n`);
    },
  };
  for (const [what, cut] of Object.entries(CUT)) {
    test(`STR-11 ${what}`, async t => {
      const { session, limpet } = await overStream(t, { call: cut });
      const connection = await rawClient(limpet.port, requestText('POST', '/mcp',
        { 'Content-Type': 'application/json', 'Mcp-Session-Id': session.id }, request(1, 'x')));
      const how = await connection.ended(3000);
      assert.ok(how, 'the connection ends');
      assert.ok(!connection.text.endsWith(LAST), 'no last chunk');
      const length = /content-length: (\d+)/i.exec(connection.text)?.[1];
      if (length) assert.ok(afterHead(connection.text).length < Number(length), 'cut short');
      const record = await limpet.record(r => r.reason === 'upstream_broke' ||
        r.reason === 'upstream_garbled');
      assert.ok(record.bytes_out > 0, 'the byte count is logged');
    });
  }

  test('STR-11 an answer without framing passes as whole and is logged so', async t => {
    const { session, limpet } = await overStream(t, { async call(connection) {
      await connection.send(`HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n${RESULT}`);
      connection.close();
    } });
    const answer = await session.ask('ping');
    assert.equal(answer.status, 200);
    assert.equal(answer.text, RESULT);
    await limpet.record(r => r.reason === 'no_framing');
  });
});

suite('readers and leavers', () => {
  const EVENT = message('x'.repeat(1000));

  // Sends events until `bytes` are sent or the connection ends; counts what was taken.
  async function pour(connection, bytes, count) {
    await connection.send(STREAM_HEAD);
    const block = chunk(EVENT.repeat(60));
    const ended = connection.until(() => connection.end, 60_000, true).catch(() => {});
    while (count.sent < bytes && !connection.end) {
      await Promise.race([connection.send(block), ended]);
      count.sent += EVENT.length * 60;
    }
    if (!connection.end) await connection.send(LAST);
  }

  test('STR-12 a client that does not read costs one bounded buffer, then its stream', async t => {
    const count = { sent: 0 };
    const { session, limpet } = await overStream(t, { stream: c => pour(c, 1e9, count),
      call: c => c.send(rawAnswer(200, { 'Content-Type': 'application/json' }, RESULT)),
      server: { timeouts: { stalled: '4s' } } });
    await session.ask('ping');
    const before = limpet.proc.memory();
    const socket = net.connect(limpet.port, '127.0.0.1');
    socket.pause();
    socket.write(requestText('GET', '/mcp',
      { Accept: 'text/event-stream', 'Mcp-Session-Id': session.id }));
    await sleep(1500);
    const stuck = count.sent;
    for (let i = 0; i < 10; i++) {
      const answer = await session.ask('ping');
      assert.equal(answer.status, 200);
      assert.ok(answer.ms < 50, `another request took ${answer.ms} ms`);
    }
    await sleep(1000);
    assert.equal(count.sent, stuck, 'the replica\'s writes block');
    assert.ok(stuck < 100e6, `${stuck} bytes were taken`);
    const grown = limpet.proc.memory() - before;
    assert.ok(grown < 8e6, `memory grew by ${grown} bytes`);
    await limpet.record(r => r.reason === 'reader_stalled', 6000);
    socket.destroy();
  });

  test('STR-12 a slow reader gets everything in order', async t => {
    const TOTAL = 6e6;
    const numbered = i => event({ i, pad: 'y'.repeat(200) });
    const { session, limpet } = await overStream(t, { async stream(connection) {
      await connection.send(STREAM_HEAD);
      for (let i = 0, sent = 0; sent < TOTAL; i++) {
        const bytes = chunk(numbered(i));
        sent += bytes.length;
        await connection.send(bytes);
      }
      await connection.send(LAST);
    } });
    const socket = net.connect(limpet.port, '127.0.0.1');
    socket.write(requestText('GET', '/mcp',
      { Accept: 'text/event-stream', 'Mcp-Session-Id': session.id }));
    socket.pause();
    const pieces = [];
    const end = performance.now() + 3000;
    while (performance.now() < end) {
      const piece = socket.read(1000) ?? socket.read();
      if (piece) pieces.push(piece);
      await sleep(100);
    }
    socket.on('data', piece => pieces.push(piece));
    socket.resume();
    const all = () => Buffer.concat(pieces).toString('latin1');
    await until(() => all().endsWith(LAST), 15_000, 'the end of the stream');
    socket.destroy();
    const text = parseMessage(all()).body;
    const numbers = [...text.matchAll(/"i":(\d+),/g)].map(m => Number(m[1]));
    assert.deepEqual(numbers, numbers.map((_, i) => i));
    assert.ok(numbers.length > 20_000);
  });

  test('a client that leaves a GET stream has it closed upstream at once', async t => {
    const streams = [];
    const { session } = await overStream(t, { stream(connection) {
      streams.push(connection);
      return connection.send(STREAM_HEAD);
    } });
    const stream = await session.stream();
    const upstream = streams.at(-1);
    const left = performance.now();
    stream.close();
    await upstream.ended(2000);
    assert.ok(performance.now() - left < 500);
  });

  test('a client that leaves a POST stream has not cancelled the call', async t => {
    let finished = false;
    const { session } = await overStream(t, { async call(connection) {
      await connection.send(STREAM_HEAD + chunk(message(0)));
      await sleep(600);
      finished = !connection.end;
      await connection.send(chunk(event({ jsonrpc: '2.0', id: 1, result: {} })) + LAST);
    } });
    const stream = await session.openPost(toolCall(1, 'x'));
    await stream.events.until(r => r.events.length === 1);
    stream.close();
    await sleep(900);
    assert.ok(finished, 'the upstream stream was still open when the answer came');
  });

  test('a second GET that the replica answers 409: the older one gives way', async t => {
    let open;
    const { session } = await overStream(t, { async stream(connection) {
      if (open && !open.end) {
        return connection.send(rawAnswer(409, { 'Content-Type': 'application/json' }, '{}'));
      }
      open = connection;
      return connection.send(STREAM_HEAD + chunk(message(1)));
    } });
    const first = await session.stream();
    await first.events.until(r => r.events.length === 1);
    const second = await session.stream();
    assert.equal(second.status, 200);
    await second.events.until(r => r.events.length === 1);
    await first.events.ended(2000);
    assert.equal(second.events.end, undefined);
    second.close();
  });

  test('a resumed stream is asked for with its Last-Event-ID and is never replaced', async t => {
    const seen = [];
    const { session } = await overStream(t, { async stream(connection, get) {
      seen.push(get.header('last-event-id'));
      await connection.send(STREAM_HEAD + chunk(`id: ${seen.length}\n${message(1)}`));
    } });
    const standalone = await session.stream();
    const resumed = await session.stream({ 'last-event-id': 'stream-1_4' });
    await resumed.events.until(r => r.events.length === 1);
    assert.deepEqual(seen, [undefined, 'stream-1_4']);
    assert.equal(standalone.events.end, undefined);
    standalone.close();
    resumed.close();
  });

  test('initialize answered as a stream: the id is in that head', async t => {
    const peer = await rawPeer(t, connection => connection.send('HTTP/1.1 200 OK\r\n' +
      'Content-Type: text/event-stream\r\nMcp-Session-Id: u9\r\nTransfer-Encoding: chunked\r\n\r\n' +
      `${chunk('id: a\ndata:\n\n')}${chunk(event({ jsonrpc: '2.0', id: 0, result: {} }))}${LAST}`));
    const limpet = await gateway(t, { replicas: [peer.url] });
    const answer = await post(limpet.url, initialize(0));
    assert.match(answer.headers[SESSION], /^lp1_/);
    assert.ok(!answer.text.includes('u9'));
    await post(limpet.url, request(1, 'ping'), { [SESSION]: answer.headers[SESSION] });
    assert.equal(peer.requests.at(-1).header(SESSION), 'u9');
  });

  test('many idle streams and calls beside each other', async t => {
    const { session, limpet } = await overStream(t, { stream: c => c.send(STREAM_HEAD),
      call: c => c.send(rawAnswer(200, { 'Content-Type': 'application/json' }, RESULT)) });
    const streams = await Promise.all(Array.from({ length: 100 }, () => openEvents(limpet.url,
      { headers: { accept: 'text/event-stream', ...session.headers, 'last-event-id': 'x' } })));
    for (let i = 0; i < 20; i++) assert.equal((await session.ask('ping')).status, 200);
    for (const stream of streams) {
      assert.equal(stream.events.end, undefined);
      stream.close();
    }
  });
});
