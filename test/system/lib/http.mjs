// A plain HTTP client: one connection per request unless an agent is given, nothing hidden, nothing
// followed, nothing decoded. Also the `fetch` that the official clients are given.
import http from 'node:http';
import { Readable } from 'node:stream';
import { EventReader } from './sse.mjs';

const LIMIT_MS = 10_000;

const pairs = raw => Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i], raw[2 * i + 1]]);

// Sends a request and resolves with the head: { status, headers, rawHeaders, body (a stream) }.
export function open(url, { method = 'GET', headers = {}, body, agent = false, signal,
  within = LIMIT_MS } = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers, agent, signal }, response => {
      clearTimeout(timer);
      resolve({ status: response.statusCode, headers: response.headers,
        rawHeaders: pairs(response.rawHeaders), body: response, request });
    });
    const timer = setTimeout(
      () => request.destroy(new Error(`no answer to ${method} ${url} in ${within} ms`)), within);
    request.once('error', error => { clearTimeout(timer); reject(error); });
    request.end(body);
  });
}

// Sends a request and reads the whole answer; `json` is the parsed body or undefined.
export async function send(url, options = {}) {
  const began = performance.now();
  const answer = await open(url, options);
  const timer = setTimeout(() => answer.body.destroy(new Error('the answer does not end')),
    options.within ?? LIMIT_MS);
  const chunks = [];
  for await (const chunk of answer.body) chunks.push(chunk);
  clearTimeout(timer);
  answer.text = Buffer.concat(chunks).toString();
  answer.ms = performance.now() - began;
  try { answer.json = JSON.parse(answer.text); } catch { /* not JSON: `text` has it */ }
  return answer;
}

// Opens an event stream; the answer has `events` (an EventReader) if it is one.
export async function openEvents(url, options = {}) {
  const answer = await open(url, options);
  answer.events = new EventReader(answer.body);
  answer.close = () => answer.request.destroy();
  return answer;
}

// A fetch with a fresh connection for every request. `pick(url, method)` may send it elsewhere;
// `onAnswer` sees every answer's head.
export function freshFetch({ pick = url => url, onAnswer = () => {} } = {}) {
  return async (input, init = {}) => {
    const url = await pick(new URL(input), init.method ?? 'GET');
    const headers = Object.fromEntries(new Headers(init.headers));
    if (init.body !== undefined && init.body !== null) {
      headers['content-length'] = String(Buffer.byteLength(init.body));
    }
    const answer = await open(url, { method: init.method ?? 'GET', headers,
      body: init.body ?? undefined, signal: init.signal ?? undefined, within: 60_000 });
    onAnswer(answer, url, init);
    const isEmpty = [204, 205, 304].includes(answer.status);
    if (isEmpty) answer.body.resume();
    return new Response(isEmpty ? null : Readable.toWeb(answer.body),
      { status: answer.status, headers: answer.rawHeaders });
  };
}
