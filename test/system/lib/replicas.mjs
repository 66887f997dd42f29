// Real replicas, each a process of its own: the reference server, and ours of ../replica.
import path from 'node:path';
import { send } from './http.mjs';
import { freePort } from './ports.mjs';
import { MODULES, NODE, start } from './proc.mjs';

const EVERYTHING = path.join(MODULES, '@modelcontextprotocol/server-everything/dist/index.js');
const OWN = path.resolve(import.meta.dirname, '../replica');

class Replica {
  constructor(t, settings) {
    Object.assign(this, settings);
    this.t = t;
  }

  get url() { return `http://127.0.0.1:${this.port}/mcp`; }

  async start() {
    this.proc = start(this.t, this.name, NODE, this.args,
      { env: { ...this.env, PORT: String(this.port), NAME: this.name } });
    await this.proc.listening(this.port);
    return this;
  }

  kill(signal = 'SIGKILL') { return this.proc.stop(signal); }
  async seen() { return (await send(`http://127.0.0.1:${this.port}/seen`)).json; }
}

async function fleet(t, count, args, { env = {}, prefix = 'r' } = {}) {
  return Promise.all(Array.from({ length: count }, async (_, i) =>
    new Replica(t, { args, env, name: `${prefix}${i + 1}`, port: await freePort() }).start()));
}

// @modelcontextprotocol/server-everything; its tool `get-env` tells NAME.
export const everything = (t, count) => fleet(t, count, [EVERYTHING, 'streamableHttp']);
export const everythingSse = (t, count) => fleet(t, count, [EVERYTHING, 'sse']);
export const conf = (t, count, env) =>
  fleet(t, count, [path.join(OWN, 'conf-server.mjs')], { env });
export const modernOnly = (t, count, env) =>
  fleet(t, count, [path.join(OWN, 'modern.mjs')], { env });
export const oldSse = (t, count, env) =>
  fleet(t, count, [path.join(OWN, 'old-sse-server.mjs')], { env });

export const urls = replicas => replicas.map(replica => replica.url);
