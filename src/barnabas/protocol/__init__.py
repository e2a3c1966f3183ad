"""Messages of the Kafka wire, framing, error codes.  Nothing here does I/O."""
