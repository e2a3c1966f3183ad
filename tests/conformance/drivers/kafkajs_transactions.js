// kafkajs as a driver of transactions: one JSON call a line on stdin, one answer a line on stdout.
"use strict";

const readline = require("readline");
const { Kafka, logLevel } = require("kafkajs");

const READ_TIMEOUT_MS = 10000;
const QUIET_MS = 400;

const kafka = new Kafka({
  clientId: "kafkajs",
  brokers: [process.argv[2]],
  logLevel: logLevel.NOTHING,
  retry: { retries: 8, initialRetryTime: 30, factor: 0 },
});
const producers = [];

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// kafkajs always reads in a group; one of its own comes nearest to an assigned partition.
async function withReader(group, topic, committed, work) {
  const consumer = kafka.consumer({
    groupId: group,
    heartbeatInterval: 100,
    sessionTimeout: 10000,
    maxWaitTimeInMs: 100,
    readUncommitted: !committed,
  });
  const found = [];
  await consumer.connect();
  try {
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve));
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        found.push({ partition, value: message.value.toString(), offset: Number(message.offset) });
      },
    });
    await joined;
    return await work(found);
  } finally {
    await consumer.disconnect();
  }
}

async function collect(found, partition, count) {
  const deadline = Date.now() + (count ? READ_TIMEOUT_MS : QUIET_MS);
  const here = () => found.filter((each) => each.partition === partition);
  while (Date.now() < deadline && (!count || here().length < count)) await sleep(10);
  return here();
}

const calls = {
  async txn_open({ transactional_id, timeout_ms }) {
    const producer = kafka.producer({
      transactionalId: transactional_id,
      transactionTimeout: timeout_ms,
      maxInFlightRequests: 1,
      idempotent: true,
    });
    await producer.connect();
    return producers.push({ producer, transaction: null }) - 1;
  },

  async txn_begin({ number }) {
    producers[number].transaction = await producers[number].producer.transaction();
  },

  async txn_send({ number, topic, partition, values }) {
    const messages = values.map((value) => ({ value, partition }));
    await producers[number].transaction.send({ topic, messages });
  },

  async txn_commit({ number }) {
    await producers[number].transaction.commit();
  },

  async txn_abort({ number }) {
    await producers[number].transaction.abort();
  },

  async txn_close({ number }) {
    await producers[number].producer.disconnect();
  },

  async txn_read({ topic, partition, committed, count }) {
    const group = `read-${Date.now()}-${Math.random()}`;
    return withReader(group, topic, committed, async (found) =>
      (await collect(found, partition, count)).map((each) => each.value),
    );
  },

  async txn_copy({ number, group, source, target, count, commit }) {
    return withReader(group, source, true, async (received) => {
      const found = await collect(received, 0, count);
      const transaction = await producers[number].producer.transaction();
      const messages = found.map(({ value }) => ({ value, partition: 0 }));
      await transaction.send({ topic: target, messages });
      const offset = String(found[found.length - 1].offset + 1);
      await transaction.sendOffsets({
        consumerGroupId: group,
        topics: [{ topic: source, partitions: [{ partition: 0, offset }] }],
      });
      await (commit ? transaction.commit() : transaction.abort());
      return found.map((each) => each.value);
    });
  },
};

// The code of the broker lies at the bottom of what kafkajs wraps around it.
function refusal(error) {
  for (let at = error; at; at = at.originalError || at.cause) {
    if (Number.isInteger(at.code)) return { code: at.code, text: String(error) };
  }
  return { code: null, text: `${error && error.stack}` };
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { id, op, args } = JSON.parse(line);
    let answer;
    try {
      const value = await calls[op](args);
      answer = { id, ok: value === undefined ? null : value };
    } catch (error) {
      answer = { id, error: refusal(error) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
  process.exit(0);
}

main();
