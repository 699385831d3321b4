"""A small MCP client (Streamable HTTP, standard library only) that says exactly what came back for each call."""

from .client import McpClient, Question, Reply
from .http import HttpError

__all__ = ["HttpError", "McpClient", "Question", "Reply"]
