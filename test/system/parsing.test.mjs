// Event streams in every spelling the text of the standard allows, through the gateway: what a client
// understands must be what the replica said. Case codes: PAR. (The gateway re-encodes nothing but the
// endpoint event of old SSE; here its comments are on, as often as can be.)
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gateway } from './lib/gateway.mjs';
import { chunk, rawAnswer, rawPeer } from './lib/raw.mjs';
import { Session, SESSION } from './lib/rpc.mjs';

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
const LAST = '0\r\n\r\n';
const NOTE = '{"jsonrpc":"2.0","method":"notifications/message","params":{}}';

// Opens a GET stream that the replica plays by `play(connection)`; waits for its end.
async function through(t, play, comment_every = '100ms') {
  const peer = await rawPeer(t, (connection, seen) => {
    if (seen.method === 'GET') return play(connection, seen);
    return connection.send(seen.body.includes('"initialize"')
      ? rawAnswer(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'u1' },
        '{"jsonrpc":"2.0","id":0,"result":{}}')
      : rawAnswer(202, {}));
  });
  const limpet = await gateway(t, { replicas: [peer.url], server: { comment_every } });
  const session = await Session.open(limpet.url);
  const stream = await session.stream();
  await stream.events.ended(8000);
  return { stream, session, peer };
}

const withoutComments = text => text.replaceAll(/(?<=^|[\r\n]):[^\r\n]*\n\n/g, '');
const facts = events => events.map(({ type, data, id }) => [type, data, id]);

suite('PAR', () => {
  test('PAR-01 events without data pass unchanged; their ids count', async t => {
    const body = `id: 1\ndata:\n\nid: 2\ndata\n\nevent: message\ndata: ${NOTE}\n\n:c\n\nid: 3\n\n`;
    const { stream, session, peer } = await through(t, async connection => {
      await connection.send(HEAD + chunk(body) + LAST);
    }, 'off');
    assert.equal(stream.events.text, body);
    assert.deepEqual(stream.events.messages, [JSON.parse(NOTE)]);
    const again = await session.stream({ 'last-event-id': '3' });
    again.close();
    assert.equal(peer.requests.at(-1).header('last-event-id'), '3');
    assert.equal(peer.requests.at(-1).header(SESSION), 'u1');
  });

  const EVENTS = ['id: a|data: {"n":1}', 'event: message|data: {"n":|data: 2}', 'data: {"n":3}'];
  const coded = end => EVENTS.map(e => e.replaceAll('|', end) + end + end).join('');
  const mixed = 'id: a\rdata: {"n":1}\r\n\nevent: message\ndata: {"n":\r\ndata: 2}\r\r' +
    'data: {"n":3}\n\r\n';
  const EXPECTED = [['message', '{"n":1}', 'a'], ['message', '{"n":\n2}', 'a'],
    ['message', '{"n":3}', 'a']];

  for (const [name, text] of [['LF', coded('\n')], ['CRLF', coded('\r\n')], ['CR', coded('\r')],
    ['mixed', mixed]]) {
    test(`PAR-02 line ends ${name}, one byte at a time`, async t => {
      const { stream } = await through(t, async connection => {
        await connection.send(HEAD);
        for (const byte of text) {
          await connection.send(chunk(byte));
          await sleep(7);
        }
        await connection.send(LAST);
      });
      assert.deepEqual(facts(stream.events.events), EXPECTED);
      assert.ok(stream.events.comments.length > 0, 'comments were put in');
      assert.equal(withoutComments(stream.events.text), text, 'the bytes are the same');
    });
  }

  test('PAR-02 every two-way split', async t => {
    const texts = [coded('\n'), coded('\r\n'), coded('\r'), mixed];
    const splits = texts.flatMap(text => Array.from({ length: text.length - 1 },
      (_, i) => [text.slice(0, i + 1), text.slice(i + 1)]));
    const { stream } = await through(t, async connection => {
      await connection.send(HEAD);
      for (const [first, second] of splits) {
        await connection.send(chunk(first));
        await sleep(1);
        await connection.send(chunk(second));
      }
      await connection.send(LAST);
    });
    assert.deepEqual(facts(stream.events.events), splits.flatMap(() => EXPECTED));
  });

  test('PAR-03 several data lines, several events in one piece, odd fields', async t => {
    const body = 'data: {\ndata:   "a": 1\ndata: }\n\n' +
      Array.from({ length: 5 }, (_, i) => `data: ${i}\n\n`).join('') +
      'data:x\n\ndata: x\n\ndata:  x\n\ndataX: 1\nData: 1\n\n';
    const { stream } = await through(t, c => c.send(HEAD + chunk(body) + LAST), 'off');
    assert.equal(stream.events.text, body);
    assert.deepEqual(stream.events.events.map(e => e.data),
      ['{\n  "a": 1\n}', '0', '1', '2', '3', '4', 'x', 'x', ' x']);
  });

  test('PAR-03 an event larger than any buffer passes whole', async t => {
    const data = JSON.stringify({ pad: 'z'.repeat(3_000_000) });
    const { stream } = await through(t, async connection => {
      await connection.send(`${HEAD}${chunk('data: ')}`);
      for (let at = 0; at < data.length; at += 50_000) {
        await connection.send(chunk(data.slice(at, at + 50_000)));
        await sleep(5);
      }
      await connection.send(chunk('\n\n') + LAST);
    });
    assert.equal(stream.events.events.length, 1);
    assert.equal(stream.events.events[0].data, data);
  });

  test('PAR-04 an unfinished last event: bytes as they were, nothing is made whole', async t => {
    const body = 'id: 1\ndata: {"ok":1}\n\nid: 2\ndata: {"cut":1}';
    const { stream } = await through(t, c => c.send(HEAD + chunk(body) + LAST), 'off');
    assert.equal(stream.events.text, body);
    assert.deepEqual(facts(stream.events.events), [['message', '{"ok":1}', '1']]);
  });

  test('PAR-04 an unfinished last event of a stream that broke: broken here too', async t => {
    const { stream } = await through(t, async connection => {
      await connection.send(HEAD + chunk('id: 1\ndata: 1\n\nid: 2\ndata: {"cut":1}'));
      await sleep(100);
      connection.reset();
    });
    assert.notEqual(stream.events.end, 'end');
    assert.deepEqual(stream.events.events.map(e => e.data), ['1']);
  });

  test('PAR-04 a lone CR at the end is a blank line, a CR after data is not', async t => {
    for (const [body, events] of [['data: 1\n\r', ['1']], ['data: 2\r', []]]) {
      const { stream } = await through(t, c => c.send(HEAD + chunk(body) + LAST), 'off');
      assert.equal(stream.events.text, body);
      assert.deepEqual(stream.events.events.map(e => e.data), events);
    }
  });
});
