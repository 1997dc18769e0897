"""Tools for agents, which read and plan, and the command with which a person approves a plan."""
