"""Groups, their members and their committed offsets: decisions only, no I/O."""
