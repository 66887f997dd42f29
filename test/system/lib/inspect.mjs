// `limpet inspect` as a user runs it: words in, both outputs and the exit status out.
import { spawn } from 'node:child_process';
import { LIMPET } from './proc.mjs';

const LIMIT_MS = 20_000;

// input: what is typed; undefined: standard input is not there.
export function inspect(args, { input, within = LIMIT_MS, env = {}, cwd } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(LIMPET, ['inspect', ...args], { cwd, env: { ...process.env, ...env },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
    const result = { stdout: '', stderr: '' };
    const timer = setTimeout(() => child.kill('SIGKILL'), within);
    for (const stream of ['stdout', 'stderr']) {
      child[stream].setEncoding('utf8').on('data', text => { result[stream] += text; });
    }
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ ...result, code, signal,
        get json() { return JSON.parse(result.stdout); } });
    });
    if (input !== undefined) child.stdin.end(input);
  });
}
