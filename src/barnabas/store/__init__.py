"""The coordination tree: ZooKeeper's model, in an embedded file or in ZooKeeper itself."""
