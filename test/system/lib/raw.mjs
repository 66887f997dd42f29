// Raw bytes on both sides: a client that sends exactly what it is told, and a scriptable peer that
// plays a replica. Nothing here interprets more of HTTP than it must to find the end of a message.
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

// One connection, either side. Bytes that came in wait in `input`.
export class RawConnection {
  #waiting = new Set();
  input = Buffer.alloc(0);
  end;

  constructor(socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', chunk => {
      this.input = Buffer.concat([this.input, chunk]);
      this.#wake();
    });
    socket.once('end', () => this.#finish('end'));
    socket.once('error', error => this.#finish(error.code));
    socket.once('close', () => this.#finish('closed'));
  }

  #wake() { for (const check of this.#waiting) check(); }
  #finish(how) { this.end ??= how; this.#wake(); }
  get text() { return this.input.toString('latin1'); }

  send(bytes) {
    return new Promise(resolve => this.socket.write(bytes, 'latin1', resolve));
  }
  // Writes byte by byte, so that the other side sees every border.
  async dribble(bytes, everyMs = 1) {
    for (const byte of Buffer.from(bytes, 'latin1')) {
      await this.send(Buffer.of(byte));
      await sleep(everyMs);
    }
  }
  close() { this.socket.end(); }
  destroy() { this.socket.destroy(); }
  reset() { this.socket.resetAndDestroy(); }

  // Waits until `test(text)` is true; `isEndFine` lets the end of the connection do as well.
  until(test, within = 5000, isEndFine = false) {
    return new Promise((resolve, reject) => {
      const settle = (error, value) => {
        clearTimeout(timer);
        this.#waiting.delete(check);
        if (error) reject(error); else resolve(value);
      };
      const check = () => {
        const found = test(this.text);
        if (found) settle(null, found);
        else if (this.end) settle(isEndFine ? null : new Error(`${this.end} after: ${this.text}`));
      };
      const timer = setTimeout(() => settle(new Error(
        `not within ${within} ms; came so far: ${JSON.stringify(this.text.slice(-800))}`)), within);
      this.#waiting.add(check);
      check();
    });
  }

  ended(within) { return this.until(() => this.end, within, true).then(() => this.end); }

  // Takes one whole message (by Content-Length or chunks, else only the head) off the input.
  async take(within) {
    const message = await this.until(() => parseMessage(this.text), within);
    this.input = this.input.subarray(message.length);
    return message;
  }
}

// Parses a message at the start of `text` (latin1), or returns undefined while it is not whole.
// `toEnd`: a body without framing goes on to the end of the connection.
export function parseMessage(text, { hasBody = true } = {}) {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [first, ...lines] = text.slice(0, headEnd).split('\r\n');
  const fields = lines.map(line => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  const all = name => fields.filter(f => f[0] === name).map(f => f[1]);
  const message = { first, fields, all, header: name => all(name)[0], head: text.slice(0, headEnd),
    status: Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1]), body: '', length: headEnd + 4 };
  const [method, target] = first.split(' ');
  Object.assign(message, { method, target });
  if (!hasBody || message.status < 200) return message;
  const isChunked = /chunked/i.test(message.header('transfer-encoding') ?? '');
  return isChunked ? withChunks(message, text) : withLength(message, text);
}

function withLength(message, text) {
  const size = Number(message.header('content-length') ?? 0);
  if (text.length < message.length + size) return undefined;
  message.body = text.slice(message.length, message.length + size);
  message.length += size;
  return message;
}

function withChunks(message, text) {
  for (let at = message.length; ;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const size = parseInt(text.slice(at, lineEnd), 16);
    const end = lineEnd + 2 + size + 2;
    if (text.length < end) return undefined;
    if (size === 0) return Object.assign(message, { length: end });
    message.body += text.slice(lineEnd + 2, lineEnd + 2 + size);
    at = end;
  }
}

export async function rawClient(port, bytes) {
  const socket = net.connect(port, '127.0.0.1');
  const connection = new RawConnection(socket);
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  if (bytes !== undefined) await connection.send(bytes);
  return connection;
}

// Sends bytes on a new connection, takes one answer, closes. 1xx answers are kept in `interim`.
export async function rawExchange(port, bytes, within) {
  const connection = await rawClient(port, bytes);
  try {
    const interim = [];
    for (;;) {
      const message = await connection.take(within);
      if (message.status >= 200) return { ...message, interim, connection };
      interim.push(message.status);
    }
  } finally {
    connection.destroy();
  }
}

// A request text with the right Content-Length.
export function requestText(method, target, headers = {}, body) {
  const fields = { Host: '127.0.0.1', ...headers };
  if (body !== undefined) fields['Content-Length'] ??= Buffer.byteLength(body, 'latin1');
  const lines = Object.entries(fields).flatMap(([name, value]) =>
    [value].flat().map(v => `${name}: ${v}`));
  return `${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body ?? ''}`;
}

// A peer on its own port. `script(connection, request, peer)` is called for each request and answers
// it by raw bytes; requests are kept in `peer.requests`, connections in `peer.connections`.
export async function rawPeer(t, script, { port = 0, pauseReading = false } = {}) {
  const peer = { requests: [], connections: [] };
  peer.server = net.createServer({ pauseOnConnect: pauseReading }, async socket => {
    const connection = new RawConnection(socket);
    peer.connections.push(connection);
    try {
      for (;;) {
        const request = await connection.take(600_000);
        peer.requests.push(request);
        await script(connection, request, peer);
      }
    } catch { /* the connection ended; what came of it is for the test to judge */ }
  });
  await new Promise((resolve, reject) =>
    peer.server.once('error', reject).listen(port, '127.0.0.1', resolve));
  peer.port = peer.server.address().port;
  peer.url = `http://127.0.0.1:${peer.port}/mcp`;
  peer.stop = () => {
    for (const connection of peer.connections) connection.destroy();
    peer.server.close();
  };
  t.after(peer.stop);
  return peer;
}

// Answers in raw form.
export function rawAnswer(status, headers, body = '') {
  const fields = Object.entries({ 'Content-Length': Buffer.byteLength(body, 'latin1'), ...headers })
    .flatMap(([name, value]) => [value].flat().filter(v => v !== null).map(v => `${name}: ${v}\r\n`));
  return `HTTP/1.1 ${status} X\r\n${fields.join('')}\r\n${body}`;
}

export const chunk = text => `${Buffer.byteLength(text, 'latin1').toString(16)}\r\n${text}\r\n`;
