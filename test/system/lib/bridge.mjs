// `limpet connect` by hand: lines in, lines out.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { until } from './flow.mjs';
import { LIMPET } from './proc.mjs';

export const INITIALIZE = { jsonrpc: '2.0', id: 'open', method: 'initialize', params: {
  protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'hand', version: '1' } } };

class Bridge {
  lines = [];
  said = '';
  #messages = []; // parsed once: they may be long
  #rest = [];
  #number = 0;

  constructor(child) {
    this.child = child;
    child.stdin.on('error', () => {}); // it may have ended
    child.stdout.setEncoding('utf8').on('data', text => this.#take(text));
    child.stderr.setEncoding('utf8').on('data', text => { this.said += text; });
    this.ended = once(child, 'close').then(([code, signal]) => { this.signal = signal; return code; });
  }

  send(message) {
    this.child.stdin.write(typeof message === 'string' ? message : JSON.stringify(message) + '\n');
  }
  // Only a line feed ends a line; Node's readline takes U+2028 for an end as well.
  #take(text) {
    const [first, ...others] = text.split('\n');
    this.#rest.push(first);
    for (const next of others) {
      this.lines.push(this.#rest.join(''));
      this.#rest = [next];
    }
  }
  find(id) {
    while (this.#messages.length < this.lines.length) {
      this.#messages.push(JSON.parse(this.lines[this.#messages.length]));
    }
    return this.#messages.find(m => m.id === id && !m.method);
  }
  async answer(id, within = 8000) {
    await until(() => this.find(id), within, `an answer to ${id} (${this.said})`);
    return this.find(id);
  }
  // Sends a request with an id of its own and waits for the answer.
  ask(method, params, within) {
    const id = `${method}-${++this.#number}`;
    this.send({ jsonrpc: '2.0', id, method, ...(params && { params }) });
    return this.answer(id, within);
  }
  tool(name, args = {}, within) { return this.ask('tools/call', { name, arguments: args }, within); }
  async open() {
    this.send(INITIALIZE);
    const opened = await this.answer('open');
    this.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return opened;
  }
  async close() {
    this.child.stdin.end();
    return this.ended;
  }
}

export function byHand(t, url, flags = [], options = {}) {
  const child = spawn(LIMPET, ['connect', ...flags, url], options);
  t.after(() => child.kill('SIGKILL'));
  return new Bridge(child);
}
