"""The `barnabas` command: one file per subcommand in `commands`."""
