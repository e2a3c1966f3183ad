"""Moves money in transactions until it is killed or fenced, by Barnabas's own client.

    python -m tests.conformance.drivers.barnabas_transfers BOOTSTRAP TOPIC TRANSACTIONAL_ID PREFIX LEDGER

A transfer writes what it takes and what it gives to the partition LEDGER, and its name to partition 0.
Prints the name of each transfer whose commit was answered.  Ends with FENCED once another process has its
transactional id.
"""

import itertools
import random
import sys

from barnabas.client.errors import KafkaError, ProducerFenced
from barnabas.client.producer import Producer

ACCOUNTS = ("alice", "bob", "carol")
NAMES = 0
FENCED = 3
ABORTED_SHARE = 0.1
REFUSED_SHARE = 0.05


class Refused(Exception):
    """The transfer is not wanted after all."""


def opened(bootstrap_servers: str, transactional_id: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "bootstrap.timeout.ms": 60_000,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 600_000,  # nobody is too slow, however busy the machine is
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 20,
            "linger.ms": 0,
        }
    )
    until_done(producer.init_transactions)
    return producer


def until_done(call: object) -> None:
    """Calls again after errors that another try may mend."""
    assert callable(call)
    while True:
        try:
            call()
        except KafkaError as error:
            if not error.retriable:
                raise
        else:
            return


def transfer(producer: Producer, topic: str, name: str, ledger: int) -> bool:
    """Whether it was committed.  Raises ProducerFenced."""
    source, target = random.sample(ACCOUNTS, 2)
    amount = random.randrange(1, 100)
    until_done(producer.begin_transaction)
    try:
        producer.send(topic, f"{name} {-amount}".encode(), source.encode(), partition=ledger)
        if random.random() < REFUSED_SHARE:
            producer.flush()  # so that there is something to abort
        producer.send(topic, f"{name} {amount}".encode(), target.encode(), partition=ledger)
        producer.send(topic, name.encode(), partition=NAMES)
        if random.random() < ABORTED_SHARE:
            raise Refused
        until_done(producer.commit_transaction)
    except ProducerFenced:
        raise
    except (Refused, KafkaError):  # a record was refused, or the whole transaction
        until_done(producer.abort_transaction)
        return False
    return True


def main(bootstrap_servers: str, topic: str, transactional_id: str, prefix: str, ledger: str) -> None:
    producer = opened(bootstrap_servers, transactional_id)
    for number in itertools.count():
        name = f"{prefix}-{number}"
        try:
            if transfer(producer, topic, name, int(ledger)):
                print(name, flush=True)
        except ProducerFenced:
            producer.close(1)
            sys.exit(FENCED)


if __name__ == "__main__":
    main(*sys.argv[1:])
