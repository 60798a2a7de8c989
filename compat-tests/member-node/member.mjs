// One member of a consumer group, or a producer, on one of the JavaScript client libraries.
//
// The one argument is a JSON object, the fields of compat-tests/internal/event.Config; what happens is
// reported on standard output, one JSON object a line, as compat-tests/internal/event.Event says.

import { readFileSync, writeSync } from 'node:fs'

const config = JSON.parse(process.argv[2])

function emit (kind, fields = {}) {
  const nanos = Number(process.hrtime.bigint() - startMonotonic) + startWall
  writeSync(1, JSON.stringify({ kind, nanos, ...fields }) + '\n')
}

const startWall = Date.now() * 1e6
const startMonotonic = process.hrtime.bigint()

function versionOf (name) {
  return JSON.parse(readFileSync(new URL(`./node_modules/${name}/package.json`, import.meta.url))).version
}

// The partition and the value of each record to write.
function records () {
  return Array.from({ length: config.produce }, (_, n) => ({ partition: n % config.partitions, value: `${config.prefix}.${n}.${'x'.repeat(50)}` }))
}

// Reports records that were acknowledged, given where the first one of each partition went.
function emitProduced (base) {
  const next = new Map(base)
  for (const { partition, value } of records()) {
    const offset = next.get(partition)
    next.set(partition, offset + 1)
    emit('produced', { partition, offset, text: value })
  }
}

// What the member owns: the libraries tell the whole assignment each time.
const owned = new Set()

function release () {
  for (const partition of owned) emit('release', { partition })
  owned.clear()
}

function claim (partitions, member, generation) {
  release()
  for (const partition of partitions) {
    owned.add(partition)
    emit('claim', { partition, member, generation })
  }
}

// SIGTERM asks the member to leave in an orderly way: from then on it processes nothing.
let leaving = false
const terminated = new Promise(resolve => process.once('SIGTERM', () => {
  leaving = true
  release()
  resolve()
}))

// kafkajs has gzip; other codecs are put in by its user.

async function kafkajs () {
  const { default: lib } = await import('kafkajs')
  const { lz4Compress, lz4Decompress } = await import('@platformatic/wasm-utils')
  const { default: snappy } = await import('kafkajs-snappy')
  const { CompressionTypes, CompressionCodecs } = lib
  CompressionCodecs[CompressionTypes.Snappy] = snappy
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: async encoder => lz4Compress(encoder.buffer),
    decompress: async buffer => lz4Decompress(buffer)
  })
  return { lib, client: new lib.Kafka({ clientId: config.clientId, brokers: [config.addr], logLevel: lib.logLevel.WARN }) }
}

async function consumeKafkajs () {
  const { client } = await kafkajs()
  const consumer = client.consumer({
    groupId: config.group, sessionTimeout: config.sessionMs, rebalanceTimeout: config.rebalanceMs,
    heartbeatInterval: config.heartbeatMs, maxWaitTimeInMs: 250, readUncommitted: !config.committed
  })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => claim(payload.memberAssignment[config.topic] ?? [], payload.memberId))
  consumer.on(consumer.events.REBALANCING, release)
  consumer.on(consumer.events.CRASH, ({ payload }) => emit('error', { text: String(payload.error) }))
  await consumer.connect()
  await consumer.subscribe({ topic: config.topic, fromBeginning: true })
  await consumer.run({
    eachBatch: async ({ batch, resolveOffset, commitOffsetsIfNecessary, uncommittedOffsets, isStale }) => {
      for (const m of batch.messages) {
        if (isStale() || leaving) return
        emit('record', { partition: batch.partition, offset: Number(m.offset), text: m.value.toString() })
        resolveOffset(m.offset)
      }
      await commitOffsetsIfNecessary(uncommittedOffsets())
    }
  })
  await terminated
  await consumer.disconnect()
}

async function produceKafkajs () {
  const { lib, client } = await kafkajs()
  const types = { none: 'None', gzip: 'GZIP', snappy: 'Snappy', lz4: 'LZ4', zstd: 'ZSTD' }
  const producer = client.producer({
    idempotent: config.idempotent ?? false, transactionalId: config.transactional,
    maxInFlightRequests: config.idempotent ? 1 : undefined, createPartitioner: lib.Partitioners.DefaultPartitioner
  })
  await producer.connect()
  const transaction = config.transactional ? await producer.transaction() : undefined
  const answers = await (transaction ?? producer).send({
    topic: config.topic, acks: -1, compression: lib.CompressionTypes[types[config.compression]], messages: records()
  })
  emitProduced(answers.map(a => [a.partition, Number(a.baseOffset)]))
  if (config.abort) await transaction.abort()
  else await transaction?.commit()
  await producer.disconnect()
}

// @platformatic/kafka

async function consumePlatformatic () {
  const { Consumer } = await import('@platformatic/kafka')
  const consumer = new Consumer({
    clientId: config.clientId, bootstrapBrokers: [config.addr], groupId: config.group,
    sessionTimeout: config.sessionMs, rebalanceTimeout: config.rebalanceMs, heartbeatInterval: config.heartbeatMs,
    maxWaitTime: 250, autocommit: false, isolationLevel: config.committed ? 1 : 0
  })
  consumer.on('consumer:group:join', ({ assignments, memberId, generationId }) => {
    claim((assignments ?? []).filter(a => a.topic === config.topic).flatMap(a => a.partitions), memberId, generationId)
  })
  consumer.on('consumer:group:rebalance', release)
  const stream = await consumer.consume({ topics: [config.topic], mode: 'committed', fallbackMode: 'earliest' })
  stream.on('error', err => emit('error', { text: String(err) }))
  terminated.then(async () => {
    await consumer.close(true)
    process.exit(0)
  })
  for await (const m of stream) {
    if (leaving) break
    emit('record', { partition: m.partition, offset: Number(m.offset), text: m.value.toString() })
    await m.commit()
  }
}

async function producePlatformatic () {
  const { Producer } = await import('@platformatic/kafka')
  const producer = new Producer({
    clientId: config.clientId, bootstrapBrokers: [config.addr], idempotent: config.idempotent ?? false,
    transactionalId: config.transactional
  })
  const transaction = config.transactional ? await producer.beginTransaction() : undefined
  const { offsets } = await (transaction ?? producer).send({
    acks: -1, compression: config.compression,
    messages: records().map(({ partition, value }) => ({ topic: config.topic, partition, value: Buffer.from(value) }))
  })
  emitProduced(offsets.map(o => [o.partition, Number(o.offset)]))
  if (config.abort) await transaction.abort()
  else await transaction?.commit()
  await producer.close()
}

const clients = {
  kafkajs: ['kafkajs', consumeKafkajs, produceKafkajs],
  platformatic: ['@platformatic/kafka', consumePlatformatic, producePlatformatic]
}

const [name, consume, produce] = clients[config.client]
emit('version', { text: versionOf(name) })
try {
  await (config.produce ? produce : consume)()
} catch (err) {
  emit('error', { text: String(err) })
  console.error(err)
  process.exit(1) // connections would keep it
}
