// Our HTTP/1 parser against Node's, on inputs that two readers like to understand differently. A
// smuggled request lives in such a difference, so every one is listed here with its reason:
//   stricter  we refuse what Node accepts
//   looser    we accept what Node refuses; must not hide a message from anybody
// An input without either must get the same verdict from both: the same messages with the same
// body lengths, and the same kind of end. Both accepting with different messages is never allowed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

const BUILD = path.resolve(import.meta.dirname, process.env.LIMPET_BUILD ?? '../../build');
const VERDICT = path.join(BUILD, 'test/interop/http1-verdict');

const HOST = 'Host: a\r\n';
const get = (fields = '') => `GET / HTTP/1.1\r\n${HOST}${fields}\r\n`;
const post = (fields, body = '') => `POST / HTTP/1.1\r\n${HOST}${fields}\r\n${body}`;
const chunked = body => post('Transfer-Encoding: chunked\r\n', body);
const CHUNKS = '5\r\nhello\r\n0\r\n\r\n';
const HIDDEN = 'GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n';

const same = (name, want, bytes) => ({ name, want, bytes });
const looser = (name, want, bytes, why) => ({ name, want, bytes, looser: why });
const stricter = (name, bytes, why) => ({ name, want: 'refuse after', bytes, stricter: why });
// Node versions before ours accept it, or some of it; the one we are tested with may refuse it too.
const stricterThanOld = (name, bytes, why) => ({ ...stricter(name, bytes, why), isOld: true });

const CASES = [
  // plain traffic: the comparison itself works
  same('a GET', 'accept 0', get()),
  same('a POST with a length', 'accept 5', post('Content-Length: 5\r\n', 'hello')),
  same('a chunked POST', 'accept 5', chunked(CHUNKS)),
  same('three in a row', 'accept 5 5 0',
    post('Content-Length: 5\r\n', 'hello') + chunked(CHUNKS) + get()),
  same('a length of 0, then another', 'accept 0 0', post('Content-Length: 0\r\n') + get()),
  same('a body that looks like a request', 'accept 36',
    post('Content-Length: 36\r\n', 'GET /hidden HTTP/1.1\r\nHost: abc\r\n\r\n!')),
  same('half a head', 'broken after', 'GET / HTTP/1.1\r\nHost: a\r\n'),
  same('half a body', 'broken after', post('Content-Length: 5\r\n', 'hel')),
  same('half a chunk', 'broken after', chunked('5\r\nhel')),
  same('no last chunk', 'broken after', chunked('5\r\nhello\r\n')),
  same('no end of trailers', 'broken after', chunked('0\r\nA: b\r\n')),

  // CL against TE
  same('CL.TE', 'refuse after',
    post('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n' + HIDDEN)),
  same('TE.CL', 'refuse after',
    post('Transfer-Encoding: chunked\r\nContent-Length: 4\r\n',
      '5c\r\nGPOST / HTTP/1.1\r\n\r\n0\r\n\r\n')),
  same('CL of 0 with TE', 'refuse after',
    post('Content-Length: 0\r\nTransfer-Encoding: chunked\r\n', CHUNKS)),
  same('CL with TE: identity', 'refuse after',
    post('Content-Length: 5\r\nTransfer-Encoding: identity\r\n', 'hello')),

  // TE spelled to be seen by one reader only
  same('TE: Chunked in capitals', 'accept 5', post('TRANSFER-ENCODING: CHUNKED\r\n', CHUNKS)),
  same('TE: xchunked', 'refuse after', post('Transfer-Encoding: xchunked\r\n', CHUNKS)),
  same('TE: chunkedx', 'refuse after', post('Transfer-Encoding: chunkedx\r\n', CHUNKS)),
  same('TE: chunked twice in a list', 'refuse after',
    post('Transfer-Encoding: chunked, chunked\r\n', CHUNKS)),
  same('TE: chunked on two lines', 'refuse after',
    post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', CHUNKS)),
  same('TE: chunked, identity', 'refuse after',
    post('Transfer-Encoding: chunked, identity\r\n', CHUNKS)),
  stricter('TE: identity, chunked', post('Transfer-Encoding: identity, chunked\r\n', CHUNKS),
    'one more thing to be read differently; RFC 7230 did away with identity'),
  stricter('TE: gzip, chunked', post('Transfer-Encoding: gzip, chunked\r\n', CHUNKS),
    'nobody in front of an MCP server undoes gzip here'),
  same('TE: gzip', 'refuse after', post('Transfer-Encoding: gzip\r\n', CHUNKS)),
  same('TE: chunked on one line, gzip on the next', 'refuse after',
    post('Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n', CHUNKS)),
  same('TE: chunked with a comma', 'refuse after',
    post('Transfer-Encoding: chunked,\r\n', CHUNKS)),
  same('TE: chunked with a parameter', 'refuse after',
    post('Transfer-Encoding: chunked;q=1\r\n', CHUNKS)),
  same('TE in quotes', 'refuse after', post('Transfer-Encoding: "chunked"\r\n', CHUNKS)),
  stricterThanOld('TE that is empty', post('Transfer-Encoding:\r\n', CHUNKS),
    'llhttp 9.3 takes it for no coding, and the body for the next request'),
  same('TE after a tab', 'accept 5', post('Transfer-Encoding:\tchunked\r\n', CHUNKS)),
  same('TE after a vertical tab', 'refuse after',
    post('Transfer-Encoding: \x0bchunked\r\n', CHUNKS)),
  same('TE before a form feed', 'refuse after',
    post('Transfer-Encoding: chunked\x0c\r\n', CHUNKS)),
  looser('TE with blanks behind', 'accept 5', post('Transfer-Encoding: chunked \t \r\n', CHUNKS),
    'blanks around a value do not belong to it (RFC 9110 5.5)'),
  same('TE with a space before the colon', 'refuse after',
    post('Transfer-Encoding : chunked\r\n', CHUNKS)),
  same('TE with a tab before the colon', 'refuse after',
    post('Transfer-Encoding\t: chunked\r\n', CHUNKS)),
  same('TE behind a space', 'refuse after',
    post('A: b\r\n Transfer-Encoding: chunked\r\n', CHUNKS)),
  same('TE folded', 'refuse after', post('Transfer-Encoding:\r\n chunked\r\n', CHUNKS)),
  same('TE behind a bare CR', 'refuse after',
    post('A: b\rTransfer-Encoding: chunked\r\n', CHUNKS)),
  same('TE behind a bare LF', 'refuse after',
    post('A: b\nTransfer-Encoding: chunked\r\n', CHUNKS)),
  same('TE with an underscore', 'accept 0',
    post('Transfer_Encoding: chunked\r\nContent-Length: 0\r\n')),
  same('TE with a NUL in its name', 'refuse after',
    post('Transfer-Encoding\0: chunked\r\n', CHUNKS)),
  stricter('TE in HTTP/1.0', 'POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n' + CHUNKS,
    'RFC 9112 6.1: to be treated as faulty framing'),
  stricter('TE in HTTP/1.0, kept alive',
    'POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n' +
      CHUNKS + HIDDEN,
    'RFC 9112 6.1: to be treated as faulty framing'),

  // Content-Length
  looser('CL twice, the same', 'accept 5',
    post('Content-Length: 5\r\nContent-Length: 5\r\n', 'hello'),
    'the same line twice can only be read one way (RFC 9110 8.6 leaves the choice)'),
  same('CL twice, different', 'refuse after',
    post('Content-Length: 5\r\nContent-Length: 6\r\n', 'hello!')),
  same('CL: 5, 5', 'refuse after', post('Content-Length: 5, 5\r\n', 'hello')),
  same('CL: 5, 6', 'refuse after', post('Content-Length: 5, 6\r\n', 'hello')),
  same('CL: +5', 'refuse after', post('Content-Length: +5\r\n', 'hello')),
  same('CL: -5', 'refuse after', post('Content-Length: -5\r\n', 'hello')),
  same('CL: 0x5', 'refuse after', post('Content-Length: 0x5\r\n', 'hello')),
  same('CL: 5.0', 'refuse after', post('Content-Length: 5.0\r\n', 'hello')),
  same('CL: 5e0', 'refuse after', post('Content-Length: 5e0\r\n', 'hello')),
  same('CL: 5 5', 'refuse after', post('Content-Length: 5 5\r\n', 'hello')),
  same('CL: 005', 'accept 5', post('Content-Length: 005\r\n', 'hello')),
  same('CL that is empty', 'refuse after', post('Content-Length:\r\n', 'hello')),
  same('CL over 64 bits', 'refuse after',
    post('Content-Length: 18446744073709551621\r\n', 'hello')),
  same('CL folded', 'refuse after', post('Content-Length: 5\r\n 0\r\n', 'hello')),
  same('CL with a space before the colon', 'refuse after',
    post('Content-Length : 5\r\n', 'hello')),

  // chunks
  same('chunk size in capitals, with zeros', 'accept 10',
    chunked('0A\r\n0123456789\r\n000\r\n\r\n')),
  same('chunk size with 0x', 'refuse after', chunked('0x5\r\nhello\r\n0\r\n\r\n')),
  same('chunk size with a plus', 'refuse after', chunked('+5\r\nhello\r\n0\r\n\r\n')),
  same('chunk size with a minus', 'refuse after', chunked('-5\r\nhello\r\n0\r\n\r\n')),
  same('chunk size after a space', 'refuse after', chunked(' 5\r\nhello\r\n0\r\n\r\n')),
  same('chunk size before a space', 'refuse after', chunked('5 \r\nhello\r\n0\r\n\r\n')),
  same('chunk size before a tab', 'refuse after', chunked('5\t\r\nhello\r\n0\r\n\r\n')),
  same('chunk size with an underscore', 'refuse after',
    chunked('1_0\r\n0123456789abcdef\r\n0\r\n\r\n')),
  same('chunk size of 16 digits', 'accept 5', chunked('0000000000000005\r\nhello\r\n0\r\n\r\n')),
  stricter('chunk size of 17 digits', chunked('00000000000000005\r\nhello\r\n0\r\n\r\n'),
    'no 64-bit number needs them; Node skips leading zeros without end'),
  same('chunk size over 64 bits', 'refuse after',
    chunked('10000000000000005\r\nhello\r\n0\r\n\r\n')),
  same('chunk size that is missing', 'refuse after', chunked('\r\nhello\r\n0\r\n\r\n')),
  same('chunk size with a bare LF', 'refuse after', chunked('5\nhello\r\n0\r\n\r\n')),
  same('chunk size with a bare CR', 'refuse after', chunked('5\rhello\r\n0\r\n\r\n')),
  same('chunk data with a bare LF', 'refuse after', chunked('5\r\nhello\n0\r\n\r\n')),
  same('chunk data that is too long', 'refuse after', chunked('5\r\nhello!\r\n0\r\n\r\n')),
  same('chunk data without a line end', 'refuse after', chunked('5\r\nhello0\r\n\r\n')),
  same('chunk data with any two bytes as line end', 'refuse after',
    chunked('5\r\nhelloXX0\r\n\r\n')),
  same('chunk extension', 'accept 5', chunked('5;a=b;c="d"\r\nhello\r\n0;e\r\n\r\n')),
  looser('chunk extension without a name', 'accept 5', chunked('5;\r\nhello\r\n0\r\n\r\n'),
    'extensions are read over, whatever they say'),
  same('chunk extension after a space', 'refuse after', chunked('5 ;a=b\r\nhello\r\n0\r\n\r\n')),
  same('chunk extension with a bare LF', 'refuse after', chunked('5;a\nhello\r\n0\r\n\r\n')),
  same('chunk extension with a bare CR', 'refuse after', chunked('5;a\rb\r\nhello\r\n0\r\n\r\n')),
  same('chunk extension with a NUL', 'refuse after', chunked('5;a\0\r\nhello\r\n0\r\n\r\n')),
  same('chunk extension with a LF in quotes', 'refuse after',
    chunked('5;a="\n"\r\nhello\r\n0\r\n\r\n')),
  same('last chunk with a bare LF', 'refuse after', chunked('0\n\r\n' + HIDDEN)),
  same('last line with a bare LF', 'refuse after', chunked('0\r\n\n' + HIDDEN)),
  same('a trailer', 'accept 0 0', chunked('0\r\nX: y\r\n\r\n' + HIDDEN)),
  same('a trailer Content-Length', 'refuse after',
    chunked('0\r\nContent-Length: 5\r\n\r\n' + HIDDEN)),
  same('a trailer Transfer-Encoding', 'refuse after',
    chunked('0\r\nTransfer-Encoding: chunked\r\n\r\n' + HIDDEN)),
  same('a trailer without a colon', 'refuse after', chunked('0\r\nGET /hidden HTTP/1.1\r\n\r\n')),
  same('a folded trailer', 'refuse after', chunked('0\r\nX: y\r\n z\r\n\r\n')),

  // lines and fields
  same('bare LF everywhere', 'refuse after', get().replaceAll('\r\n', '\n')),
  same('bare LF after the request line', 'refuse after', 'GET / HTTP/1.1\nHost: a\r\n\r\n'),
  same('bare LF after a field', 'refuse after', 'GET / HTTP/1.1\r\nHost: a\nB: c\r\n\r\n'),
  same('bare LF as the empty line', 'refuse after', 'GET / HTTP/1.1\r\nHost: a\r\n\n' + HIDDEN),
  same('bare CR as line end', 'refuse after', 'GET / HTTP/1.1\rHost: a\r\r'),
  same('bare CR in a value', 'refuse after', get('A: b\rc\r\n')),
  same('CR CR LF', 'refuse after', get('A: b\r\r\n')),
  same('NUL in a value', 'refuse after', get('A: b\0c\r\n')),
  same('DEL in a value', 'refuse after', get('A: b\x7fc\r\n')),
  same('ESC in a value', 'refuse after', get('A: b\x1bc\r\n')),
  same('high bytes in a value', 'accept 0', get('A: \xc3\xa4\xff\r\n')),
  same('a folded field', 'refuse after', get('A: b\r\n c\r\n')),
  same('a fold before the first field', 'refuse after', 'GET / HTTP/1.1\r\n Host: a\r\n\r\n'),
  same('a field without a colon', 'refuse after', get('nonsense\r\n')),
  same('a field without a name', 'refuse after', get(': b\r\n')),
  same('a space in a name', 'refuse after', get('A B: c\r\n')),
  same('a high byte in a name', 'refuse after', get('A\xe4: c\r\n')),
  same('a bracket in a name', 'refuse after', get('A(: c\r\n')),
  same('an empty value', 'accept 0', get('A:\r\n')),

  // request line and Host
  same('empty lines first', 'accept 0', '\r\n\r\n' + get()),
  stricter('nine empty lines first', '\r\n'.repeat(9) + get(),
    'RFC 9112 2.2 speaks of one; eight is our limit'),
  stricter('a bare LF first', '\n' + get(), 'a bare LF is never a line end here'),
  same('an empty line between two', 'accept 0 0', get() + '\r\n' + get()),
  stricter('two spaces before the target', get().replace('GET /', 'GET  /'),
    'RFC 9112 3: a single space'),
  stricter('two spaces before the version', get().replace(' HTTP', '  HTTP'),
    'RFC 9112 3: a single space'),
  same('a space behind the version', 'refuse after', get().replace('1.1\r', '1.1 \r')),
  same('tabs for spaces', 'refuse after', get().replace('GET / H', 'GET\t/\tH')),
  same('a space in the target', 'refuse after', get().replace('/ ', '/a b ')),
  looser('a high byte in the target', 'accept 0', get().replace('/ ', '/\xe4 '),
    'an origin server may want it; the gate parses the target and refuses it there'),
  same('a NUL in the target', 'refuse after', get().replace('/ ', '/\0 ')),
  same('an absolute-form target', 'accept 0', get().replace('/ ', 'http://b/ ')),
  same('asterisk-form', 'accept 0', get().replace('GET /', 'OPTIONS *')),
  looser('a target without a slash', 'accept 0', get().replace('/ ', 'a '),
    "authority-form; that is not the codec's to judge but the gate's"),
  same('a fragment in the target', 'accept 0', get().replace('/ ', '/#a ')),
  looser('a method in lower case', 'accept 0', get().replace('GET', 'get'),
    'methods are any token; the gate knows those it serves'),
  looser('a method nobody knows', 'accept 0', get().replace('GET', 'FROB'),
    'methods are any token; the gate knows those it serves'),
  same('a method that is no token', 'refuse after', get().replace('GET', 'GE(T')),
  stricter('no version', 'GET /\r\n\r\n', 'HTTP/0.9, which has no answer heads'),
  stricter('HTTP/0.9', get().replace('1.1', '0.9'), 'only 1.0 and 1.1 are framed as we think'),
  same('HTTP/1.2', 'refuse after', get().replace('1.1', '1.2')),
  stricter('HTTP/2.0', get().replace('1.1', '2.0'), 'only 1.0 and 1.1 are framed as we think'),
  same('HTTP/1.10', 'refuse after', get().replace('1.1', '1.10')),
  same('HTTP/01.1', 'refuse after', get().replace('1.1', '01.1')),
  same('http/1.1', 'refuse after', get().replace('HTTP', 'http')),
  same('the preface of HTTP/2', 'refuse after', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  same('a TLS hello', 'refuse after', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'),
  same('no Host', 'refuse after', 'GET / HTTP/1.1\r\n\r\n'),
  stricter('two Hosts', get('Host: b\r\n'), 'RFC 9112 3.2 demands 400; Node drops the second'),
  stricter('two Hosts, the same', get('host: a\r\n'),
    'RFC 9112 3.2 demands 400; Node drops the second'),
  same('HTTP/1.0 without Host', 'accept 0', 'GET / HTTP/1.0\r\n\r\n'),

  // what ends a connection
  same('more after Connection: close', 'accept 0', get('Connection: close\r\n') + HIDDEN),
  same('more after HTTP/1.0', 'accept 0', 'GET / HTTP/1.0\r\n\r\n' + HIDDEN),
  same('more after HTTP/1.0 kept alive', 'accept 0 0',
    'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n' + HIDDEN),
  same('Connection: close in a list', 'accept 0', get('Connection: x, Close\r\n') + HIDDEN),
  same('Expect: 100-continue', 'accept 5',
    post('Expect: 100-continue\r\nContent-Length: 5\r\n', 'hello')),
  same('Expect: banana', 'accept 5', post('Expect: banana\r\nContent-Length: 5\r\n', 'hello')),
];

// "accept 5 0", "refuse after 5", "broken after": messages by their body lengths, then the end.
function ours(bytes) {
  const { stdout, status } = spawnSync(VERDICT, { input: bytes, encoding: 'latin1' });
  assert.equal(status, 0, `${VERDICT} failed`);
  const [, word, count, rest] = /^(\w+) (?:after )?(\d+) messages, bodies(.*)\n$/.exec(stdout);
  const bodies = rest.split(' ').filter(Boolean).map(Number);
  assert.equal(bodies.length, Number(count));
  return { end: { accept: 'accept', BROKEN: 'broken' }[word] ?? 'refuse', bodies, word };
}

let server;
let seen; // what the one connection at a time has brought

function onMessage(req, res) {
  const message = { length: 0, whole: false };
  seen.messages.push(message);
  req.on('data', data => { message.length += data.length; });
  req.on('end', () => { message.whole = req.complete; res.end('ok'); });
  req.on('error', () => {});
}

function onClientError(error, socket) {
  seen.error ??= error.code;
  // What was parsed before the error is still to be delivered.
  setImmediate(() => setImmediate(() => socket.destroy()));
}

before(() => new Promise(resolve => {
  server = http.createServer({ insecureHTTPParser: false, keepAliveTimeout: 300 }, onMessage);
  server.on('checkContinue', onMessage).on('checkExpectation', onMessage);
  server.on('clientError', onClientError);
  server.listen(0, '127.0.0.1', resolve);
}));
after(() => server.close());

// Sends the bytes, ends our side, and waits until Node has ended its own.
async function theirs(bytes) {
  seen = { messages: [], error: undefined };
  const answers = await new Promise((resolve, reject) => {
    let text = '';
    const socket = net.connect(server.address().port, '127.0.0.1');
    socket.setTimeout(5_000, () => reject(new Error('Node neither answers nor closes')));
    socket.on('data', data => { text += data.toString('latin1'); });
    socket.on('error', () => {}).on('close', () => resolve(text));
    socket.end(bytes);
  });
  await sleep(1);
  const bodies = seen.messages.filter(message => message.whole).map(message => message.length);
  // Without Host Node answers by itself; after "Connection: close" it does not read on, nor do we.
  const refused = /HTTP\/1\.1 400/.test(answers) ||
    (seen.error && seen.error !== 'HPE_CLOSED_CONNECTION');
  const broken = seen.error === 'HPE_INVALID_EOF_STATE' || seen.error === 'ECONNRESET';
  return { end: broken ? 'broken' : refused ? 'refuse' : 'accept', bodies, word: seen.error ?? '' };
}

const line = ({ end, bodies }) => [end === 'accept' ? end : `${end} after`, ...bodies].join(' ');

const startsWith = (longer, bodies) => bodies.every((length, i) => longer[i] === length);

function judge({ want, stricter: weRefuse, looser: theyRefuse, isOld }, we, they) {
  const said = `we: ${line(we)} (${we.word}), Node: ${line(they)} (${they.word})`;
  assert.equal(line(we), want, said);
  if (line(we) === line(they)) {
    assert.ok(isOld || !(weRefuse || theyRefuse), `explained, but there is no difference; ${said}`);
    return;
  }
  assert.ok(weRefuse || theyRefuse, `a difference nobody explained; ${said}`);
  // The one who refuses must not have taken another message for whole before.
  const [refuser, other] = weRefuse ? [we, they] : [they, we];
  assert.equal(refuser.end, 'refuse', said);
  assert.ok(startsWith(other.bodies, refuser.bodies), said);
}

suite('HTTP/1 verdicts', () => {
  test('there are enough inputs, each once', () => {
    assert.ok(CASES.length >= 60);
    assert.equal(new Set(CASES.map(({ name }) => name)).size, CASES.length);
    assert.equal(new Set(CASES.map(({ bytes }) => bytes)).size, CASES.length);
  });
  for (const row of CASES) {
    test(row.name, async () => {
      const bytes = Buffer.from(row.bytes, 'latin1');
      judge(row, ours(bytes), await theirs(bytes));
    });
  }
});
