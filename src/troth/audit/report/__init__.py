"""Reports of an audit: terminal, JSON, Markdown, HTML, SARIF, JUnit."""
