"""What only HTTP can get wrong: headers, statuses, sessions, streams and who is who."""
