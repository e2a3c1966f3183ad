// kafkajs as a driver: one JSON call a line on stdin, one answer a line on stdout (see ../_client.py).
"use strict";

const readline = require("readline");
const { Kafka, logLevel, CompressionTypes, CompressionCodecs, ConfigResourceTypes, AssignerProtocol } =
  require("kafkajs");
const snappy = require("snappyjs");

const READ_TIMEOUT_MS = 15000;
const HEARTBEAT_MS = 100;
const METADATA_MS = 500;
const CRASHES_MAX = 30;

// As users of kafkajs do it: the package brings gzip only.
CompressionCodecs[CompressionTypes.Snappy] = () => ({
  compress: async (encoder) => Buffer.from(snappy.compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from(unsnappy(buffer)),
});

const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0]);
function unsnappy(buffer) {
  if (!buffer.subarray(0, 8).equals(XERIAL)) return snappy.uncompress(buffer);
  const parts = [];
  for (let at = 16; at < buffer.length; ) {
    const size = buffer.readInt32BE(at);
    parts.push(snappy.uncompress(buffer.subarray(at + 4, at + 4 + size)));
    at += 4 + size;
  }
  return Buffer.concat(parts);
}

const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
};

const kafka = new Kafka({
  clientId: "kafkajs",
  brokers: [process.argv[2]],
  logLevel: logLevel.NOTHING,
  retry: { retries: 8, initialRetryTime: 30, factor: 0 },
});
const admin = kafka.admin({ retry: { retries: 3, initialRetryTime: 50, factor: 0 } });
const members = [];

const bytes = (text) => (text === null ? null : Buffer.from(text, "base64"));
const text = (data) => (data === null || data === undefined ? null : Buffer.from(data).toString("base64"));

function raw(partition, message) {
  const headers = [];
  for (const [key, value] of Object.entries(message.headers || {}))
    for (const each of Array.isArray(value) ? value : [value]) headers.push([key, text(each)]);
  return {
    partition,
    offset: Number(message.offset),
    timestamp: Number(message.timestamp),
    key: text(message.key),
    value: text(message.value),
    headers,
  };
}

async function eventually(check, timeout) {
  const deadline = Date.now() + timeout;
  while (!check() && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10));
}

function makeConsumer(groupId, more) {
  return kafka.consumer({
    groupId,
    heartbeatInterval: HEARTBEAT_MS,
    rebalanceTimeout: 10000,
    maxWaitTimeInMs: 100,
    metadataMaxAge: METADATA_MS,
    retry: { retries: 200, initialRetryTime: 50, factor: 0 },
    ...more,
  });
}

const calls = {
  async produce({ topic, messages, codec, acks, idempotent }) {
    const producer = kafka.producer({
      idempotent,
      maxInFlightRequests: idempotent ? 1 : 5,
      allowAutoTopicCreation: true,
      createPartitioner:
        () =>
        ({ message }) =>
          message.partition === undefined ? 0 : message.partition,
    });
    await producer.connect();
    try {
      const placed = await producer.send({
        topic,
        acks: acks === "all" ? -1 : Number(acks),
        compression: CODECS[codec],
        messages: messages.map((each) => ({
          key: bytes(each.key),
          value: bytes(each.value),
          headers: headersOf(each.headers),
          partition: each.partition === null ? undefined : each.partition,
          timestamp: each.timestamp === null ? undefined : String(each.timestamp),
        })),
      });
      // One answer a partition, with the offset of its first message.
      const next = {};
      for (const each of placed || []) next[each.partition] = Number(each.baseOffset);
      return messages.map((each) => {
        const partition = each.partition === null ? 0 : each.partition;
        return [partition, next[partition] === undefined ? -1 : next[partition]++];
      });
    } finally {
      await producer.disconnect();
    }
  },

  // kafkajs always reads in a group; one of its own, and a seek, come nearest to an assigned partition.
  async read({ topic, partition, start, count, fetch_bytes_max }) {
    const consumer = makeConsumer(`read-${Date.now()}-${Math.random()}`, {
      maxBytesPerPartition: fetch_bytes_max,
      sessionTimeout: 10000,
    });
    const found = [];
    await consumer.connect();
    try {
      await consumer.subscribe({ topics: [topic], fromBeginning: true });
      const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve));
      await consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: true,
        eachBatch: async ({ batch }) => {
          if (batch.partition === partition)
            for (const each of batch.messages) if (Number(each.offset) >= start) found.push(raw(partition, each));
        },
      });
      await joined;
      if (start > 0) consumer.seek({ topic, partition, offset: String(start) });
      await eventually(() => found.length >= count, READ_TIMEOUT_MS);
    } finally {
      await consumer.disconnect();
    }
    const seen = new Set();
    return found.filter((each) => !seen.has(each.offset) && seen.add(each.offset));
  },

  async bounds({ topic, partition }) {
    const found = (await admin.fetchTopicOffsets(topic)).find((each) => each.partition === partition);
    return [Number(found.low), Number(found.high)];
  },

  async offset_at({ topic, partition, timestamp }) {
    const found = (await admin.fetchTopicOffsetsByTimestamp(topic, timestamp)).find(
      (each) => each.partition === partition,
    );
    const { high } = (await admin.fetchTopicOffsets(topic)).find((each) => each.partition === partition);
    // It hides "none" behind the end of the log.
    return found.offset === high || found.offset === "-1" ? null : Number(found.offset);
  },

  async member_open({ group, topic, reset, session_timeout_ms }) {
    const consumer = makeConsumer(group, { sessionTimeout: session_timeout_ms });
    const member = { consumer, received: [], assignment: [], rebalances: 0, error: null, crashes: 0, next: {} };
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      member.rebalances++;
      member.assignment = Object.entries(payload.memberAssignment).flatMap(([name, numbers]) =>
        numbers.map((number) => [name, number]),
      );
    });
    consumer.on(consumer.events.REBALANCING, () => (member.assignment = []));
    const start = async () => {
      await consumer.connect();
      await consumer.subscribe({ topics: [topic], fromBeginning: reset === "earliest" });
      await consumer.run({
        autoCommit: false,
        eachMessage: async ({ topic: name, partition, message }) => {
          member.received.push(raw(partition, message));
          const offset = String(Number(message.offset) + 1);
          member.next[`${name}/${partition}`] = { topic: name, partition, offset };
        },
      });
    };
    // It gives up when it finds no coordinator for a moment; its users start it again, but not for ever.
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      if (payload.restart) return;
      if (++member.crashes > CRASHES_MAX) member.error = payload.error;
      else setTimeout(() => start().catch((error) => (member.error = error)), 100);
    });
    await start();
    return members.push(member) - 1;
  },

  async member_state({ number }) {
    const { assignment, received, rebalances, error } = members[number];
    return { assignment, received, rebalances, error: error && refusal(error) };
  },

  async member_commit({ number }) {
    await members[number].consumer.commitOffsets(Object.values(members[number].next));
  },

  async member_close({ number }) {
    await members[number].consumer.disconnect();
  },

  async committed({ group, topic, partition }) {
    const [found] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
    const offset = Number(found.partitions.find((each) => each.partition === partition).offset);
    return offset < 0 ? null : offset;
  },

  async create_topic({ topic, partitions, replicas, configs }) {
    const made = await admin.createTopics({
      topics: [
        {
          topic,
          numPartitions: partitions,
          replicationFactor: replicas,
          configEntries: Object.entries(configs).map(([name, value]) => ({ name, value })),
        },
      ],
    });
    // It answers "false" instead of an error.
    if (!made) throw Object.assign(new Error("the topic exists"), { code: 36 });
  },

  async delete_topic({ topic }) {
    await admin.deleteTopics({ topics: [topic] });
  },

  async topics() {
    return admin.listTopics();
  },

  async describe_topic({ topic }) {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    return topics[0].partitions.map((each) => ({
      partition: each.partitionId,
      leader: each.leader,
      replicas: each.replicas,
      isr: each.isr,
    }));
  },

  async create_partitions({ topic, total }) {
    await admin.createPartitions({ topicPartitions: [{ topic, count: total }] });
  },

  async configs({ kind, name }) {
    const type = kind === "topic" ? ConfigResourceTypes.TOPIC : ConfigResourceTypes.BROKER;
    const { resources } = await admin.describeConfigs({ resources: [{ type, name }] });
    return Object.fromEntries(resources[0].configEntries.map((each) => [each.configName, each.configValue]));
  },

  async alter_configs({ topic, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    await admin.alterConfigs({
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }],
    });
  },

  async groups() {
    return (await admin.listGroups()).groups.map((each) => each.groupId);
  },

  async describe_group({ group }) {
    const { groups } = await admin.describeGroups([group]);
    return {
      state: groups[0].state,
      members: groups[0].members.map((each) => ({
        client_id: each.clientId,
        assignment: Object.entries(
          (AssignerProtocol.MemberAssignment.decode(each.memberAssignment) || { assignment: {} }).assignment,
        ).flatMap(([name, numbers]) => numbers.map((number) => [name, number])),
      })),
    };
  },

  async delete_group({ group }) {
    await admin.deleteGroups([group]);
  },

  async delete_records({ topic, partition, before }) {
    // It knows the leaders only of topics that it has dealt with.
    await admin.fetchTopicOffsets(topic);
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] });
    return -1;
  },
};

function headersOf(pairs) {
  const headers = {};
  for (const [key, value] of pairs) headers[key] = bytes(value);
  return headers;
}

// The code of the broker lies at the bottom of what kafkajs wraps around it.
function refusal(error) {
  const deeper = (at) => at.originalError || at.cause || (at.errors && at.errors[0]) || (at.groups && at.groups[0]);
  for (let at = error; at; at = deeper(at)) {
    if (Number.isInteger(at.code)) return { code: at.code, text: String(error) };
    if (Number.isInteger(at.errorCode)) return { code: at.errorCode, text: String(error) };
  }
  return { code: null, text: `${error && error.stack}` };
}

async function main() {
  await admin.connect();
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
