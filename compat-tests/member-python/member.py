"""One member of a consumer group, or a producer, on one of the Python client libraries.

The one argument is a JSON object, the fields of compat-tests/internal/event.Config; what happens is
reported on standard output, one JSON object a line, as compat-tests/internal/event.Event says.
"""

import asyncio
import importlib.metadata
import json
import signal
import sys
import time


def emit(kind, **fields):
    print(json.dumps({"kind": kind, "nanos": time.time_ns(), **fields}), flush=True)


def emit_claims(kind, partitions):
    for p in partitions:
        emit(kind, partition=p.partition)


def values(config):
    """What to write: the partition and the value of each record."""
    for n in range(config["produce"]):
        yield n % config["partitions"], f"{config['prefix']}.{n}.{'x' * 50}".encode()


def isolation(config):
    return "read_committed" if config.get("committed") else "read_uncommitted"


class Stop:
    """Becomes true with SIGTERM, which asks a member to leave in an orderly way."""

    def __init__(self):
        self.asked = False
        signal.signal(signal.SIGTERM, self.ask)

    def ask(self, *_):
        self.asked = True


# confluent-kafka, which is librdkafka

def consume_confluent(config):
    import confluent_kafka as ck

    consumer = ck.Consumer({
        "bootstrap.servers": config["addr"], "client.id": config["clientId"], "group.id": config["group"],
        "partition.assignment.strategy": config["strategy"], "auto.offset.reset": "earliest", "enable.auto.commit": False,
        "session.timeout.ms": config["sessionMs"], "max.poll.interval.ms": max(config["rebalanceMs"], config["sessionMs"]),
        "heartbeat.interval.ms": config["heartbeatMs"], "fetch.wait.max.ms": 250, "isolation.level": isolation(config),
    })
    cooperative = config["strategy"] == "cooperative-sticky"

    def assigned(c, partitions):
        emit_claims("claim", partitions)
        (c.incremental_assign if cooperative else c.assign)(partitions)

    def revoked(c, partitions):
        emit_claims("release", partitions)
        if cooperative:
            c.incremental_unassign(partitions)
        else:
            c.unassign()

    consumer.subscribe([config["topic"]], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    stop = Stop()
    while not stop.asked:
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error():
            emit("error", text=str(message.error()))
            continue
        emit("record", partition=message.partition(), offset=message.offset(), text=message.value().decode())
        consumer.commit(message=message, asynchronous=False)
    consumer.close()


def produce_confluent(config):
    import confluent_kafka as ck

    settings = {
        "bootstrap.servers": config["addr"], "client.id": config["clientId"], "compression.type": config["compression"],
        "enable.idempotence": config.get("idempotent", False), "acks": -1, "linger.ms": 10,
    }
    transactional = config.get("transactional")
    if transactional:
        settings["transactional.id"] = transactional
    producer = ck.Producer(settings)
    if transactional:
        producer.init_transactions(30)
        producer.begin_transaction()

    def delivered(err, message):
        if err:
            emit("error", text=str(err))
        else:
            emit("produced", partition=message.partition(), offset=message.offset(), text=message.value().decode())

    for partition, value in values(config):
        producer.produce(config["topic"], value, partition=partition, on_delivery=delivered)
    producer.flush(30)
    if config.get("abort"):
        producer.abort_transaction(30)
    elif transactional:
        producer.commit_transaction(30)


# aiokafka

async def consume_aiokafka_async(config):
    from aiokafka import AIOKafkaConsumer
    from aiokafka.abc import ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    class Listener(ConsumerRebalanceListener):
        async def on_partitions_assigned(self, assigned):
            emit_claims("claim", assigned)

        async def on_partitions_revoked(self, revoked):
            emit_claims("release", revoked)

    assignor = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor, "sticky": StickyPartitionAssignor}
    consumer = AIOKafkaConsumer(
        bootstrap_servers=config["addr"], client_id=config["clientId"], group_id=config["group"],
        partition_assignment_strategy=[assignor[config["strategy"]]], auto_offset_reset="earliest", enable_auto_commit=False,
        session_timeout_ms=config["sessionMs"], rebalance_timeout_ms=config["rebalanceMs"],
        heartbeat_interval_ms=config["heartbeatMs"], fetch_max_wait_ms=250, isolation_level=isolation(config),
        group_instance_id=config.get("instanceId"),
    )
    consumer.subscribe([config["topic"]], listener=Listener())
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await consumer.start()
    try:
        while not stop.is_set():
            got = await consumer.getmany(timeout_ms=100)
            for records in got.values():
                for r in records:
                    emit("record", partition=r.partition, offset=r.offset, text=r.value.decode())
            if got:
                await consumer.commit()
        emit_claims("release", consumer.assignment())  # its listener does not hear of the end
    finally:
        await consumer.stop()


async def produce_aiokafka_async(config):
    from aiokafka import AIOKafkaProducer

    compression = config["compression"]
    transactional = config.get("transactional")
    producer = AIOKafkaProducer(
        bootstrap_servers=config["addr"], client_id=config["clientId"], acks="all", linger_ms=10,
        compression_type=None if compression == "none" else compression,
        enable_idempotence=config.get("idempotent", False), transactional_id=transactional,
    )
    await producer.start()
    try:
        if transactional:
            await producer.begin_transaction()
        sent = [(value, await producer.send(config["topic"], value, partition=partition)) for partition, value in values(config)]
        for value, future in sent:
            at = await future
            emit("produced", partition=at.partition, offset=at.offset, text=value.decode())
        if config.get("abort"):
            await producer.abort_transaction()
        elif transactional:
            await producer.commit_transaction()
    finally:
        await producer.stop()


def consume_aiokafka(config):
    asyncio.run(consume_aiokafka_async(config))


def produce_aiokafka(config):
    asyncio.run(produce_aiokafka_async(config))


# kafka-python

def consume_kafka_python(config):
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned):
            emit_claims("claim", assigned)

        def on_partitions_revoked(self, revoked):
            emit_claims("release", revoked)

    assignor = {
        "range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor,
    }
    consumer = KafkaConsumer(
        bootstrap_servers=config["addr"], client_id=config["clientId"], group_id=config["group"],
        partition_assignment_strategy=[assignor[config["strategy"]]], auto_offset_reset="earliest", enable_auto_commit=False,
        session_timeout_ms=config["sessionMs"], max_poll_interval_ms=max(config["rebalanceMs"], config["sessionMs"]),
        heartbeat_interval_ms=config["heartbeatMs"], fetch_max_wait_ms=250, isolation_level=isolation(config),
    )
    consumer.subscribe([config["topic"]], listener=Listener())
    stop = Stop()
    while not stop.asked:
        got = consumer.poll(timeout_ms=100)
        for records in got.values():
            for r in records:
                emit("record", partition=r.partition, offset=r.offset, text=r.value.decode())
        if got:
            consumer.commit()
    emit_claims("release", consumer.assignment())  # before others can have it
    consumer.close()


def produce_kafka_python(config):
    from kafka import KafkaProducer

    compression = config["compression"]
    transactional = config.get("transactional")
    producer = KafkaProducer(
        bootstrap_servers=config["addr"], client_id=config["clientId"], acks="all", linger_ms=10,
        compression_type=None if compression == "none" else compression,
        enable_idempotence=config.get("idempotent", False), transactional_id=transactional,
    )
    if transactional:
        producer.init_transactions()
        producer.begin_transaction()
    sent = [(value, producer.send(config["topic"], value, partition=partition)) for partition, value in values(config)]
    producer.flush()
    for value, future in sent:
        at = future.get(timeout=30)
        emit("produced", partition=at.partition, offset=at.offset, text=value.decode())
    if config.get("abort"):
        producer.abort_transaction()
    elif transactional:
        producer.commit_transaction()
    producer.close()


CLIENTS = {
    "confluent-kafka": (consume_confluent, produce_confluent),
    "aiokafka": (consume_aiokafka, produce_aiokafka),
    "kafka-python": (consume_kafka_python, produce_kafka_python),
}


def main():
    config = json.loads(sys.argv[1])
    consume, produce = CLIENTS[config["client"]]
    version = importlib.metadata.version(config["client"])
    if config["client"] == "confluent-kafka":
        import confluent_kafka
        version += f", librdkafka {confluent_kafka.libversion()[0]}"
    emit("version", text=version)
    try:
        (produce if config.get("produce") else consume)(config)
    except Exception as err:
        emit("error", text=repr(err))
        raise


main()
