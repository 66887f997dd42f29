// What the conformance replica offers: the tools, resources and prompts that the scenarios of the
// conformance package ask for, and a few of our own that show who answered and what it remembers.
import { setTimeout as sleep } from 'node:timers/promises';
import * as T from '@modelcontextprotocol/sdk/types.js';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAA' +
  'AABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

const object = (properties = {}, required = undefined) =>
  ({ type: 'object', properties, ...(required && { required }) });
const strings = (...names) =>
  object(Object.fromEntries(names.map(name => [name, { type: 'string' }])), names);
const integers = (...names) =>
  object(Object.fromEntries(names.map(name => [name, { type: 'integer' }])));
const text = value => ({ type: 'text', text: String(value) });
const content = (...parts) => ({ content: parts });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const resource = (uri, mimeType, value) =>
  ({ type: 'resource', resource: { uri, mimeType, text: value } });
const user = part => ({ role: 'user', content: part });

async function elicit(extra, message, properties, required) {
  const answer = await extra.sendRequest({ method: 'elicitation/create',
    params: { message, requestedSchema: object(properties, required) } }, T.ElicitResultSchema);
  return content(text(`Elicitation completed: action=${answer.action}, ` +
    `content=${JSON.stringify(answer.content ?? {})}`));
}

async function sample(extra, prompt) {
  const answer = await extra.sendRequest({ method: 'sampling/createMessage',
    params: { messages: [user(text(prompt))], maxTokens: 100 } }, T.CreateMessageResultSchema);
  return content(text(`LLM response: ${answer.content.text ?? ''}`));
}

const log = (extra, data) =>
  extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } });

async function progress(args, extra) {
  const token = extra._meta?.progressToken;
  for (const step of [0, 50, 100]) {
    if (token !== undefined) {
      await extra.sendNotification({ method: 'notifications/progress',
        params: { progressToken: token, progress: step, total: 100 } });
    }
    await sleep(50);
  }
  return content(text(token));
}

async function logging(args, extra) {
  await log(extra, 'Tool execution started');
  await sleep(50);
  await log(extra, 'Tool processing data');
  await sleep(50);
  await log(extra, 'Tool execution completed');
  return content(text('done'));
}

const choices = values => values.map((value, i) => ({ const: value, title: `Choice ${i + 1}` }));
const options = ['option1', 'option2', 'option3'];
const titled = ['value1', 'value2', 'value3'];

const DEFAULTS = {
  name: { type: 'string', default: 'John Doe' },
  age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 },
  status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true },
};

const ENUMS = {
  untitledSingle: { type: 'string', enum: options },
  titledSingle: { type: 'string', oneOf: choices(titled) },
  legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'],
    enumNames: ['Option One', 'Option Two', 'Option Three'] },
  untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
  titledMulti: { type: 'array', items: { anyOf: choices(titled) } },
};

const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: { address: { $anchor: 'addressDef', type: 'object',
    properties: { street: { type: 'string' }, city: { type: 'string' } } } },
  properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' }, email: { type: 'string' } },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

// name -> [input schema, (args, extra, session) => result]
const SUITE_TOOLS = {
  test_simple_text: [object(), () =>
    content(text('This is a simple text response for testing.'))],
  test_image_content: [object(), () => content(image)],
  test_audio_content: [object(), () =>
    content({ type: 'audio', data: WAV, mimeType: 'audio/wav' })],
  test_embedded_resource: [object(), () => content(
    resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'))],
  test_multiple_content_types: [object(), () => content(text('Multiple content types test:'), image,
    resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'))],
  test_tool_with_logging: [object(), logging],
  test_error_handling: [object(), () => ({ isError: true,
    ...content(text('This tool intentionally returns an error for testing')) })],
  test_tool_with_progress: [object(), progress],
  test_sampling: [strings('prompt'), (args, extra) => sample(extra, args.prompt)],
  test_elicitation: [strings('message'), (args, extra) => elicit(extra, args.message, {
    username: { type: 'string', description: "User's response" },
    email: { type: 'string', description: "User's email address" } }, ['username', 'email'])],
  test_elicitation_sep1034_defaults: [object(), (args, extra) =>
    elicit(extra, 'defaults', DEFAULTS)],
  test_elicitation_sep1330_enums: [object(), (args, extra) => elicit(extra, 'enums', ENUMS)],
  test_reconnection: [object(), async (args, extra, session) => {
    session.transport.closeSSEStream(extra.requestId);
    await sleep(100);
    return content(text('Reconnection test completed successfully'));
  }],
  json_schema_2020_12_tool: [SCHEMA_2020_12, () => content(text('ok'))],
};

const OWN_TOOLS = {
  whoami: [object(), (args, extra, session) => content(text(session.replica))],
  count: [object(), (args, extra, session) =>
    content(text(`${session.replica} ${++session.count}`))],
  big: [integers('bytes'), args => content(text('x'.repeat(args.bytes ?? 1_000_000)))],
  slow: [integers('ms'), async (args, extra, session) => {
    await sleep(args.ms ?? 1000);
    return content(text(session.replica));
  }],
  say: [strings('text'), args => content(text(args.text))],
  notify: [integers('n'), async (args, extra, session) => {
    for (let i = 0; i < (args.n ?? 1); i++) {
      await session.server.notification(
        { method: 'notifications/message', params: { level: 'info', data: i } });
    }
    return content(text(args.n ?? 1));
  }],
};

const TOOLS = { ...SUITE_TOOLS, ...OWN_TOOLS };

const RESOURCES = {
  'test://static-text': { mimeType: 'text/plain',
    text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: PNG },
  'test://watched-resource': { mimeType: 'text/plain', text: 'watched' },
};

// name -> [argument names, arguments => messages]
const PROMPTS = {
  test_simple_prompt: [[], () => [user(text('This is a simple prompt for testing.'))]],
  test_prompt_with_arguments: [['arg1', 'arg2'], args =>
    [user(text(`Prompt with arguments: arg1='${args.arg1}', arg2='${args.arg2}'`))]],
  test_prompt_with_embedded_resource: [['resourceUri'], args => [
    user(resource(args.resourceUri, 'text/plain', 'Embedded resource content for testing.')),
    user(text('Please process the embedded resource above.'))]],
  test_prompt_with_image: [[], () => [user(image), user(text('Please analyze the image above.'))]],
};

const refuse = message => { throw new T.McpError(T.ErrorCode.InvalidParams, message); };

function readResource(uri) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  const found = id === undefined
    ? RESOURCES[uri] ?? refuse('Resource not found')
    : { mimeType: 'application/json',
      text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) };
  return { contents: [{ uri, ...found }] };
}

function complete(prefix) {
  const values = ['paris', 'park', 'party'].filter(word => word.startsWith(prefix));
  return { completion: { values, total: values.length, hasMore: false } };
}

export const CAPABILITIES = {
  tools: { listChanged: true }, resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true }, logging: {}, completions: {} };

// Puts all handlers on a server of the v1 SDK; `session` is what its tools remember.
export function offer(server, session) {
  const on = (schema, handler) => server.setRequestHandler(schema, handler);
  on(T.ListToolsRequestSchema, () => ({ tools: Object.entries(TOOLS).map(
    ([name, [inputSchema]]) => ({ name, description: name.replaceAll('_', ' '), inputSchema })) }));
  on(T.CallToolRequestSchema, ({ params }, extra) =>
    (TOOLS[params.name] ?? refuse('Unknown tool'))[1](params.arguments ?? {}, extra, session));
  on(T.ListResourcesRequestSchema, () => ({ resources: Object.entries(RESOURCES).map(
    ([uri, { mimeType }]) => ({ uri, name: uri.slice(7), description: uri, mimeType })) }));
  on(T.ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [
    { uriTemplate: 'test://template/{id}/data', name: 'template', mimeType: 'application/json' }] }));
  on(T.ReadResourceRequestSchema, ({ params }) => readResource(params.uri));
  on(T.SubscribeRequestSchema, () => ({}));
  on(T.UnsubscribeRequestSchema, () => ({}));
  on(T.SetLevelRequestSchema, () => ({}));
  on(T.ListPromptsRequestSchema, () => ({ prompts: Object.entries(PROMPTS).map(([name, [args]]) =>
    ({ name, description: name, arguments: args.map(a => ({ name: a, required: true })) })) }));
  on(T.GetPromptRequestSchema, ({ params }) => ({ messages:
    (PROMPTS[params.name] ?? refuse('Unknown prompt'))[1](params.arguments ?? {}) }));
  on(T.CompleteRequestSchema, ({ params }) => complete(params.argument.value));
}
