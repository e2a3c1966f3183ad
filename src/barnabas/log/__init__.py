"""One partition's log on disk, in Apache Kafka's file formats."""
