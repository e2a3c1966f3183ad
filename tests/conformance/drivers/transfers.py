"""Moves money in transactions until it is killed: a transfer takes from one partition, gives to another.

    python -m tests.conformance.drivers.transfers BOOTSTRAP TOPIC TRANSACTIONAL_ID PREFIX

Prints the name of each transfer whose commit was answered.  What goes wrong is aborted, and what cannot be
aborted ends in a new producer, as the client's documentation wants it.
"""

import itertools
import sys

from confluent_kafka import KafkaException, Producer

TIMEOUT_S = 20


def opened(bootstrap_servers: str, transactional_id: str) -> Producer:
    while True:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "transactional.id": transactional_id,
                "reconnect.backoff.max.ms": 100,
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        try:
            producer.init_transactions(TIMEOUT_S)
        except KafkaException:
            continue
        return producer


def transfer(producer: Producer, topic: str, name: str) -> bool:
    """Whether the commit was answered; raises KafkaException when the producer is of no more use."""
    producer.begin_transaction()
    try:
        producer.produce(topic, name, key="from", partition=0)
        producer.produce(topic, name, key="to", partition=1)
        producer.commit_transaction(TIMEOUT_S)
    except KafkaException as refused:
        error = refused.args[0]
        while error.retriable() and not error.txn_requires_abort():
            try:
                producer.commit_transaction(TIMEOUT_S)
            except KafkaException as again:
                error = again.args[0]
            else:
                return True
        if not error.txn_requires_abort():
            raise
        producer.abort_transaction(TIMEOUT_S)
        return False
    return True


def main(bootstrap_servers: str, topic: str, transactional_id: str, prefix: str) -> None:
    producer = opened(bootstrap_servers, transactional_id)
    for number in itertools.count():
        name = f"{prefix}-{number}"
        try:
            if transfer(producer, topic, name):
                print(name, flush=True)
        except KafkaException:
            producer = opened(bootstrap_servers, transactional_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
