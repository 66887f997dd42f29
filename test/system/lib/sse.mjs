// Event streams as the WHATWG text has them: a parser of bytes, and a reader that waits for events
// and remembers when each came.
export class EventParser {
  #line = '';
  #skipLf = false;
  #data = [];
  #type = '';
  #id;
  lastId = '';
  comments = [];
  retry;

  // Takes text in any pieces; returns the events that became whole.
  feed(text) {
    const events = [];
    for (const char of text) {
      if (char === '\n' && this.#skipLf) { this.#skipLf = false; continue; }
      this.#skipLf = char === '\r';
      if (char !== '\n' && char !== '\r') { this.#line += char; continue; }
      const event = this.#endLine();
      if (event) events.push(event);
    }
    return events;
  }

  #endLine() {
    const line = this.#line;
    this.#line = '';
    if (line === '') return this.#dispatch();
    if (line.startsWith(':')) { this.comments.push(line.slice(1)); return undefined; }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.#data.push(value);
    if (name === 'event') this.#type = value;
    if (name === 'id' && !value.includes('\0')) this.#id = value;
    if (name === 'retry' && /^\d+$/.test(value)) this.retry = Number(value);
    return undefined;
  }

  #dispatch() {
    if (this.#id !== undefined) this.lastId = this.#id;
    const event = { type: this.#type || 'message', data: this.#data.join('\n'), id: this.lastId };
    const isEvent = this.#data.length > 0;
    this.#data = [];
    this.#type = '';
    return isEvent ? event : undefined;
  }
}

export class EventReader {
  #parser = new EventParser();
  #waiting = new Set();
  events = [];
  chunks = [];
  end;

  constructor(body) {
    const decoder = new TextDecoder();
    body.on('data', chunk => {
      const at = performance.now();
      const text = decoder.decode(chunk, { stream: true });
      this.chunks.push({ at, text });
      for (const event of this.#parser.feed(text)) this.events.push({ ...event, at });
      this.#wake();
    });
    body.once('end', () => this.#finish('end'));
    body.once('error', error => this.#finish(`broken (${error.code ?? error.message})`));
    body.once('close', () => this.#finish('closed'));
  }

  get text() { return this.chunks.map(chunk => chunk.text).join(''); }
  get comments() { return this.#parser.comments; }
  get messages() {
    return this.events.filter(e => e.data && e.type === 'message').map(e => JSON.parse(e.data));
  }

  #wake() { for (const check of this.#waiting) check(); }
  #finish(how) { this.end ??= how; this.#wake(); }

  // Waits until `test(reader)` gives something true and returns that.
  until(test, within = 5000, what = 'the expected events') {
    return new Promise((resolve, reject) => {
      const check = () => {
        const found = test(this);
        if (found) { done(); resolve(found); }
      };
      const done = () => { clearTimeout(timer); this.#waiting.delete(check); };
      const timer = setTimeout(() => {
        done();
        reject(new Error(`${what} did not come in ${within} ms; the stream (${this.end ?? 'open'}) ` +
          `had: ${JSON.stringify(this.text.slice(-800))}`));
      }, within);
      this.#waiting.add(check);
      check();
    });
  }

  message(test, within) {
    return this.until(r => r.messages.find(test), within, 'the expected message');
  }

  ended(within) { return this.until(r => r.end, within, 'the end of the stream'); }
}

// All events in a text.
export function parseEvents(text) {
  return new EventParser().feed(text);
}
