"""A small MCP client (Streamable HTTP, standard library only) that reports exactly the reply to each call."""

from .client import McpClient, Question, Reply
from .http import HttpError

__all__ = ["HttpError", "McpClient", "Question", "Reply"]
