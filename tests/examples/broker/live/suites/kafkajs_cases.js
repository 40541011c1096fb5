// What the users of kafkajs do. `node kafkajs_cases.js BOOTSTRAP_SERVERS CASE` runs one case, and fails with its error.
// kafkajs is found by NODE_PATH.

const assert = require('node:assert/strict')
const { randomUUID } = require('node:crypto')
const { once, EventEmitter } = require('node:events')
const {
  AclOperationTypes, AclPermissionTypes, AclResourceTypes, CompressionTypes, ConfigResourceTypes, Kafka,
  Partitioners, ResourcePatternTypes, logLevel,
} = require('kafkajs')

const [brokers, name] = process.argv.slice(2)
const kafka = new Kafka({ clientId: name, brokers: brokers.split(','), logLevel: logLevel.NOTHING })
const opened = []

async function connected(client) {
  await client.connect()
  opened.push(client)
  return client
}

const admin = () => connected(kafka.admin())
const producer = options => connected(kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, ...options }))
const consumer = options => connected(kafka.consumer({ maxWaitTimeInMs: 100, ...options }))

async function newTopic(client, options = {}) {
  const topic = `kafkajs-${randomUUID()}`
  await client.createTopics({ topics: [{ topic, ...options }], waitForLeaders: true })
  return topic
}

// A new topic and a producer.
async function ready(client, options) {
  return { topic: await newTopic(client, options), writer: await producer() }
}

// The messages that a consumer gets, with a way to wait for a number of them.
class Inbox extends EventEmitter {
  messages = []

  add({ topic, partition, message }) {
    this.messages.push({ topic, partition, offset: message.offset, value: message.value?.toString() ?? null,
      key: message.key?.toString() ?? null, headers: message.headers })
    this.emit('message')
  }

  get values() {
    return this.messages.map(each => each.value)
  }

  async has(count) {
    while (this.messages.length < count) await once(this, 'message')
  }
}

async function subscribed(topic, options = {}, run = {}) {
  const inbox = new Inbox()
  const reader = await consumer({ groupId: randomUUID(), ...options })
  await reader.subscribe({ topics: [topic].flat(), fromBeginning: true })
  const joined = new Promise(resolve => reader.on(reader.events.GROUP_JOIN, resolve))
  await reader.run({ ...run, eachMessage: run.eachBatch ? undefined : async each => inbox.add(each) })
  await joined
  return { reader, inbox }
}

async function eventually(condition) {
  while (true) {
    const value = await condition()
    if (value) return value
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

// Fails unless the broker has answered with that error. The client may have tried again before it gave up.
async function rejected(promise, type) {
  const error = await promise.then(() => null, error => error)
  const { type: found } = error?.errors?.[0] ?? error?.cause ?? error ?? {}
  assert.equal(found, type)
}

const values = count => Array.from({ length: count }, (_, index) => ({ value: String(index) }))

const cases = {
  // Administration

  async 'topics are created, listed, described and deleted'({ client }) {
    const topic = `kafkajs-${randomUUID()}`
    const create = { topics: [{ topic, numPartitions: 4, replicationFactor: 3 }] }
    assert.equal(await client.createTopics({ ...create, validateOnly: true, waitForLeaders: false }), true)
    assert(!(await client.listTopics()).includes(topic))
    assert.equal(await client.createTopics(create), true)
    assert.equal(await client.createTopics(create), false)
    assert((await client.listTopics()).includes(topic))
    const { topics: [described] } = await client.fetchTopicMetadata({ topics: [topic] })
    assert.deepEqual(described.partitions.map(each => each.partitionId).sort(), [0, 1, 2, 3])
    assert(described.partitions.every(each => each.isr.length === 3 && each.replicas.length === 3))
    await client.deleteTopics({ topics: [topic] })
    assert(!(await client.listTopics()).includes(topic))
  },

  async 'a topic has the replicas and the settings that its creator asks for'({ client }) {
    const topic = `kafkajs-${randomUUID()}`
    await client.createTopics({
      topics: [{
        topic,
        replicaAssignment: [{ partition: 0, replicas: [3, 1] }, { partition: 1, replicas: [2, 3] }],
        configEntries: [{ name: 'retention.ms', value: '60000' }],
      }],
      waitForLeaders: true,
    })
    const { topics: [{ partitions }] } = await client.fetchTopicMetadata({ topics: [topic] })
    assert.deepEqual(partitions.sort((a, b) => a.partitionId - b.partitionId).map(each => each.replicas), [[3, 1], [2, 3]])
    const { resources: [found] } = await client.describeConfigs({
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configNames: ['retention.ms'] }],
      includeSynonyms: false,
    })
    assert.deepEqual(found.configEntries.map(each => [each.configName, each.configValue]), [['retention.ms', '60000']])
  },

  async 'a topic that exists, a bad name and a bad size are refused'({ client }) {
    const refused = (topic, type) => rejected(client.createTopics({ topics: [topic] }), type)
    await refused({ topic: 'a b' }, 'INVALID_TOPIC_EXCEPTION')
    await refused({ topic: randomUUID(), numPartitions: 0 }, 'INVALID_PARTITIONS')
    await refused({ topic: randomUUID(), replicationFactor: 4 }, 'INVALID_REPLICATION_FACTOR')
    const strict = await connected(kafka.admin({ retry: { retries: 1 } }))
    await rejected(strict.deleteTopics({ topics: [randomUUID()] }), 'UNKNOWN_TOPIC_OR_PARTITION')
  },

  async 'partitions are added'({ client }) {
    const topic = await newTopic(client, { numPartitions: 1 })
    await client.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
    const { topics: [{ partitions }] } = await client.fetchTopicMetadata({ topics: [topic] })
    assert.equal(partitions.length, 3)
    await assert.rejects(client.createPartitions({ topicPartitions: [{ topic, count: 2 }] }))
  },

  async 'settings are described and altered'({ client }) {
    const topic = await newTopic(client)
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
    await client.alterConfigs({
      validateOnly: false, resources: [{ ...resource, configEntries: [{ name: 'retention.ms', value: '5000' }] }],
    })
    await eventually(async () => {
      const { resources: [{ configEntries }] } = await client.describeConfigs({ resources: [resource] })
      return configEntries.find(each => each.configName === 'retention.ms').configValue === '5000'
    })
    const bad = [{ ...resource, configEntries: [{ name: 'retention.ms', value: 'no number' }] }]
    await assert.rejects(client.alterConfigs({ resources: bad }))
    const { resources: [broker] } = await client.describeConfigs({
      resources: [{ type: ConfigResourceTypes.BROKER, name: '1' }],
    })
    assert(broker.configEntries.length > 0)
  },

  async 'the cluster is described'({ client }) {
    const { brokers: found, clusterId, controller } = await client.describeCluster()
    assert.deepEqual(found.map(each => each.nodeId).sort(), [1, 2, 3])
    assert(clusterId)
    assert.notEqual(controller, undefined)
  },

  async 'groups are listed, described and deleted'({ client, groupId }) {
    const topic = await newTopic(client)
    const { reader } = await subscribed(topic, { groupId })
    assert((await client.listGroups()).groups.some(each => each.groupId === groupId))
    const { groups: [group] } = await client.describeGroups([groupId])
    assert.deepEqual([group.state, group.protocolType, group.members.length], ['Stable', 'consumer', 1])
    await assert.rejects(client.deleteGroups([groupId]), { name: 'KafkaJSDeleteGroupsError' })
    await reader.disconnect()
    const [deleted] = await client.deleteGroups([groupId])
    assert.deepEqual([deleted.groupId, deleted.errorCode], [groupId, 0])
    assert(!(await client.listGroups()).groups.some(each => each.groupId === groupId))
  },

  async 'offsets of a topic are found by place and by time'({ client }) {
    const { topic, writer } = await ready(client, { numPartitions: 1 })
    await writer.send({ topic, messages: [1000, 2000, 3000].map(time => ({ value: 'x', timestamp: String(time) })) })
    assert.deepEqual(await client.fetchTopicOffsets(topic), [{ partition: 0, offset: '3', high: '3', low: '0' }])
    assert.deepEqual(await client.fetchTopicOffsetsByTimestamp(topic, 1500), [{ partition: 0, offset: '1' }])
    assert.deepEqual(await client.fetchTopicOffsetsByTimestamp(topic, 9000), [{ partition: 0, offset: '3' }])
  },

  async 'offsets of a group are set, fetched and reset'({ client, groupId }) {
    const { topic, writer } = await ready(client, { numPartitions: 2 })
    await writer.send({ topic, messages: [{ value: 'x', partition: 0 }, { value: 'y', partition: 0 }] })
    await client.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '1' }] })
    const fetched = async () => {
      const [{ partitions }] = await client.fetchOffsets({ groupId, topics: [topic], resolveOffsets: true })
      return partitions.sort((a, b) => a.partition - b.partition).map(each => each.offset)
    }
    // For a partition without a committed offset it tells the end.
    assert.deepEqual(await fetched(), ['1', '0'])
    await client.resetOffsets({ groupId, topic, earliest: true })
    assert.deepEqual(await fetched(), ['0', '0'])
    await client.resetOffsets({ groupId, topic })
    assert.deepEqual(await fetched(), ['2', '0'])
  },

  async 'records are deleted'({ client }) {
    const { topic, writer } = await ready(client, { numPartitions: 1 })
    await writer.send({ topic, messages: values(5) })
    // It knows the leaders only after such a call.
    await client.fetchTopicOffsets(topic)
    await client.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '3' }] })
    assert.equal((await client.fetchTopicOffsets(topic))[0].low, '3')
    await client.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '-1' }] })
    assert.equal((await client.fetchTopicOffsets(topic))[0].low, '5')
    await assert.rejects(client.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '9' }] }))
  },

  async 'no reassignment is listed'({ client }) {
    assert.deepEqual(await client.listPartitionReassignments({}), { topics: [] })
  },

  // Producers

  async 'records are written with each level of acknowledgement'({ client }) {
    const { topic, writer } = await ready(client, { numPartitions: 1 })
    const [all] = await writer.send({ topic, acks: -1, messages: values(2) })
    assert.deepEqual([all.errorCode, all.baseOffset, all.partition], [0, '0', 0])
    const [one] = await writer.send({ topic, acks: 1, messages: values(1) })
    assert.equal(one.baseOffset, '2')
    await writer.send({ topic, acks: 0, messages: values(1) })
    await eventually(async () => (await client.fetchTopicOffsets(topic))[0].high === '4')
  },

  async 'compressed records, keys, headers and tombstones come as they were written'({ client }) {
    const topic = await newTopic(client, { numPartitions: 1 })
    const messages = [
      { key: 'a', value: 'x'.repeat(10_000), headers: { one: 'h', two: ['i', 'j'] } },
      { key: 'b', value: null },
    ]
    await (await producer()).send({ topic, compression: CompressionTypes.GZIP, messages })
    const { inbox } = await subscribed(topic)
    await inbox.has(2)
    assert.deepEqual(inbox.messages.map(each => [each.key, each.value]), [['a', messages[0].value], ['b', null]])
    assert.equal(inbox.messages[0].headers.one.toString(), 'h')
    assert.deepEqual(inbox.messages[0].headers.two.map(String), ['i', 'j'])
  },

  async 'a batch of records for several topics is written'({ client }) {
    const topics = [await newTopic(client), await newTopic(client)]
    const answers = await (await producer()).sendBatch({
      topicMessages: topics.map(topic => ({ topic, messages: values(10) })),
    })
    assert.deepEqual(new Set(answers.map(each => each.topicName)), new Set(topics))
    const { inbox } = await subscribed(topics)
    await inbox.has(20)
  },

  async 'an idempotent producer writes each record once and in order'({ client }) {
    const topic = await newTopic(client, { numPartitions: 1 })
    const writer = await producer({ idempotent: true, maxInFlightRequests: 1 })
    for (let index = 0; index < 20; index += 1) await writer.send({ topic, messages: [{ value: String(index) }] })
    const { inbox } = await subscribed(topic)
    await inbox.has(20)
    assert.deepEqual(inbox.values, values(20).map(each => each.value))
    assert.equal((await client.fetchTopicOffsets(topic))[0].high, '20')
  },

  async 'a topic is created by a producer, unless it forbids it'({ client }) {
    const topic = `kafkajs-${randomUUID()}`
    await (await producer({ allowAutoTopicCreation: true })).send({ topic, messages: values(1) })
    assert((await client.listTopics()).includes(topic))
    const strict = await producer({ allowAutoTopicCreation: false, retry: { retries: 1 } })
    await rejected(strict.send({ topic: randomUUID(), messages: values(1) }), 'UNKNOWN_TOPIC_OR_PARTITION')
  },

  async 'a record that is too large is refused'({ client }) {
    const topic = await newTopic(client)
    const writer = await producer({ retry: { retries: 0 } })
    const messages = [{ value: Buffer.alloc(2 << 20, 'x') }]
    await rejected(writer.send({ topic, messages }), 'MESSAGE_TOO_LARGE')
  },

  async 'a transaction is refused'() {
    const writer = await producer({ transactionalId: randomUUID(), idempotent: true, retry: { retries: 1 } })
    // It does not tell what the broker has answered.
    await assert.rejects(writer.transaction(), { name: 'KafkaJSGroupCoordinatorNotFound' })
  },

  // Consumers

  async 'members share the partitions, and take over those of a member that leaves'({ client, groupId }) {
    const topic = await newTopic(client, { numPartitions: 6 })
    const assigned = []
    const join = async index => {
      const reader = await consumer({ groupId, rebalanceTimeout: 5000, heartbeatInterval: 100 })
      await reader.subscribe({ topic })
      reader.on(reader.events.GROUP_JOIN, event => { assigned[index] = event.payload.memberAssignment[topic] ?? [] })
      await reader.run({ eachMessage: async () => {} })
      return reader
    }
    const shared = (...counts) => eventually(() =>
      assigned.length === counts.length && counts.every((count, index) => assigned[index].length === count)
      && new Set(assigned.flat()).size === 6)
    await join(0)
    await shared(6)
    const second = await join(1)
    await shared(3, 3)
    const third = await join(2)
    await shared(2, 2, 2)
    await third.disconnect()
    assigned.pop()
    await shared(3, 3)
    await second.disconnect()
    assigned.pop()
    await shared(6)
  },

  async 'a group goes on after what it has committed'({ client, groupId }) {
    const { topic, writer } = await ready(client, { numPartitions: 1 })
    await writer.send({ topic, messages: values(4) })
    const first = await subscribed(topic, { groupId }, { autoCommit: false })
    await first.inbox.has(4)
    await first.reader.commitOffsets([{ topic, partition: 0, offset: '3', metadata: 'done' }])
    await first.reader.disconnect()
    const second = await subscribed(topic, { groupId })
    await second.inbox.has(1)
    assert.deepEqual(second.inbox.values, ['3'])
    await second.reader.disconnect()
    const [{ partitions: [{ offset }] }] = await client.fetchOffsets({ groupId, topics: [topic] })
    assert.equal(offset, '4')
  },

  async 'a consumer seeks'({ client }) {
    const { topic, writer } = await ready(client, { numPartitions: 1 })
    await writer.send({ topic, messages: values(5) })
    const { reader, inbox } = await subscribed(topic)
    await inbox.has(5)
    reader.seek({ topic, partition: 0, offset: '2' })
    await inbox.has(8)
    assert.deepEqual(inbox.values, ['0', '1', '2', '3', '4', '2', '3', '4'])
  },

  async 'a consumer pauses and resumes'({ client }) {
    const { topic, writer } = await ready(client, { numPartitions: 2 })
    const { reader, inbox } = await subscribed(topic)
    reader.pause([{ topic, partitions: [0] }])
    assert.deepEqual(reader.paused(), [{ topic, partitions: [0] }])
    await writer.send({ topic, messages: [{ partition: 0, value: 'later' }] })
    await writer.send({ topic, messages: [{ partition: 1, value: 'now' }] })
    await inbox.has(1)
    assert.deepEqual(inbox.values, ['now'])
    reader.resume([{ topic }])
    await inbox.has(2)
    assert.deepEqual(inbox.values, ['now', 'later'])
  },

  async 'a consumer gets whole batches and commits within them'({ client, groupId }) {
    const { topic, writer } = await ready(client, { numPartitions: 1 })
    await writer.send({ topic, messages: values(10) })
    const got = []
    await subscribed(topic, { groupId }, {
      eachBatchAutoResolve: false,
      eachBatch: async ({ batch, resolveOffset, heartbeat, commitOffsetsIfNecessary, uncommittedOffsets }) => {
        for (const message of batch.messages) {
          got.push(message.value.toString())
          resolveOffset(message.offset)
          await heartbeat()
        }
        await commitOffsetsIfNecessary(uncommittedOffsets())
      },
    })
    await eventually(() => got.length === 10)
    await eventually(async () =>
      (await client.fetchOffsets({ groupId, topics: [topic] }))[0].partitions[0].offset === '10')
  },

  async 'a consumer finds topics by a pattern'({ client, groupId }) {
    const prefix = randomUUID()
    const topic = `${prefix}-events`
    await client.createTopics({ topics: [{ topic }], waitForLeaders: true })
    await (await producer()).send({ topic, messages: values(1) })
    const reader = await consumer({ groupId })
    const inbox = new Inbox()
    await reader.subscribe({ topic: new RegExp(`^${prefix}`), fromBeginning: true })
    await reader.run({ eachMessage: async each => inbox.add(each) })
    await inbox.has(1)
  },

  async 'a long poll ends when a record comes'({ client }) {
    const maxWaitTimeInMs = 10_000
    const { topic, writer } = await ready(client, { numPartitions: 1 })
    const { inbox } = await subscribed(topic, { maxWaitTimeInMs })
    const sent = Date.now()
    await writer.send({ topic, messages: values(1) })
    await inbox.has(1)
    assert(Date.now() - sent < maxWaitTimeInMs)
  },

  async 'a consumer without an offset begins at the end, if it wants to'({ client, groupId }) {
    const { topic, writer } = await ready(client, { numPartitions: 1 })
    await writer.send({ topic, messages: [{ value: 'old' }] })
    const reader = await consumer({ groupId })
    const inbox = new Inbox()
    await reader.subscribe({ topic, fromBeginning: false })
    const fetched = new Promise(resolve => reader.on(reader.events.FETCH, resolve))
    await reader.run({ eachMessage: async each => inbox.add(each) })
    await fetched
    await writer.send({ topic, messages: [{ value: 'new' }] })
    await inbox.has(1)
    assert.deepEqual(inbox.values, ['new'])
  },

  // What the brokers do not have

  async 'access control lists are not served'({ client }) {
    const acl = {
      resourceType: AclResourceTypes.TOPIC, resourceName: 'events', resourcePatternType: ResourcePatternTypes.LITERAL,
      principal: 'User:ann', host: '*', operation: AclOperationTypes.ALL, permissionType: AclPermissionTypes.ALLOW,
    }
    await assert.rejects(client.createAcls({ acl: [acl] }), { name: 'KafkaJSServerDoesNotSupportApiKey' })
  },

  async 'replicas cannot be moved'({ client }) {
    const topic = await newTopic(client)
    const topics = [{ topic, partitionAssignment: [{ partition: 0, replicas: [1] }] }]
    await assert.rejects(
      client.alterPartitionReassignments({ topics }), { name: 'KafkaJSServerDoesNotSupportApiKey' }
    )
  },
}

async function main() {
  try {
    await cases[name]({ client: await admin(), groupId: randomUUID() })
  } finally {
    await Promise.all(opened.map(client => client.disconnect()))
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
