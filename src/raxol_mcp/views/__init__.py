"""Live views as tools: what may be done on a screen, and a server kept in step with it."""
