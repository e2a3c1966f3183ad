"""What coordinators and clients store or embed: group, offset and transaction records."""
