'use strict';
// Drives a local MNS with Alibaba's Node SDK: node_sdk.js ENDPOINT ACCESS_KEY_ID ACCESS_KEY_SECRET

const assert = require('assert');
const path = require('path');
const { createRequire } = require('module');

const modules = createRequire(path.join(__dirname, '../../target/sdk/package.json'));
const MNSClient = modules('@alicloud/mns');

const [endpoint, accessKeyId, accessKeySecret] = process.argv.slice(2);
const client = new MNSClient('account', { endpoint, accessKeyId, accessKeySecret });
const QUEUE = 'sdk-node';

async function fails(code, promise) {
  await assert.rejects(promise, (error) => {
    assert.strictEqual(error.name, `MNS${code}Error`, error.message);
    return true;
  });
}

async function queues() {
  const created = await client.createQueue(QUEUE, { VisibilityTimeout: 30 });
  assert.strictEqual(created.code, 201);
  assert.strictEqual(created.headers.location, `${endpoint}/queues/${QUEUE}`);
  assert.strictEqual((await client.createQueue(QUEUE, { VisibilityTimeout: 30 })).code, 204);
  assert.strictEqual((await client.setQueueAttributes(QUEUE, { VisibilityTimeout: 60 })).code, 204);
  const { body } = await client.getQueueAttributes(QUEUE);
  assert.strictEqual(body.VisibilityTimeout, '60');
}

async function single() {
  await fails('MessageNotExist', client.receiveMessage(QUEUE, 1));
  const sent = await client.sendMessage(QUEUE, { MessageBody: 'plain text', Priority: 8 });
  assert.strictEqual(sent.code, 201);
  assert.strictEqual((await client.peekMessage(QUEUE)).body.MessageId, sent.body.MessageId);
  const { body } = await client.receiveMessage(QUEUE, 1);
  assert.strictEqual(body.MessageBody, 'plain text');
  const changed = await client.changeMessageVisibility(QUEUE, body.ReceiptHandle, 60);
  assert.notStrictEqual(changed.body.ReceiptHandle, body.ReceiptHandle);
  await fails('MessageNotExist', client.deleteMessage(QUEUE, body.ReceiptHandle));
  assert.strictEqual((await client.deleteMessage(QUEUE, changed.body.ReceiptHandle)).code, 204);
}

async function batch() {
  const sent = await client.batchSendMessage(QUEUE, [{ MessageBody: 'one' }, { MessageBody: 'two' }]);
  assert.strictEqual(sent.body.length, 2);
  const { body } = await client.batchReceiveMessage(QUEUE, 16, 1);
  assert.deepStrictEqual(body.map((message) => message.MessageBody), ['one', 'two']);
  const handles = body.map((message) => message.ReceiptHandle);
  const partial = await client.batchDeleteMessage(QUEUE, [handles[0], 'bogus-handle']);
  assert.strictEqual(partial.code, 404);
  assert.strictEqual([].concat(partial.body)[0].ReceiptHandle, 'bogus-handle');
  assert.strictEqual((await client.batchDeleteMessage(QUEUE, [handles[1]])).code, 204);
  await fails('MalformedXML', client.sendMessage(QUEUE, { MessageBody: 'a <b> & c' }));
}

async function main() {
  await queues();
  await single();
  await batch();
  const { body } = await client.getQueueAttributes(QUEUE);
  assert.deepStrictEqual([body.ActiveMessages, body.InactiveMessages, body.DelayMessages], ['0', '0', '0']);
  assert.strictEqual((await client.deleteQueue(QUEUE)).code, 204);
  const stranger = new MNSClient('account', { endpoint, accessKeyId, accessKeySecret: 'other' });
  await fails('SignatureDoesNotMatch', stranger.getQueueAttributes(QUEUE));
  console.log('node sdk: ok');
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
