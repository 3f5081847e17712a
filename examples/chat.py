"""Chat in the terminal with a model that remembers, by any endpoint that speaks OpenAI's chat protocol.

OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=llama3.2 python chat.py
"""

import json
import os
import urllib.request
from datetime import UTC, datetime

from wellkept import Wellkept

PROMPT = "You are a helpful assistant. Use what you remember about the user, and say so if you do not know something."


def ask_model(messages):
    """Return the model's answer to the messages."""
    address = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
    body = json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": list(messages)}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"}
    with urllib.request.urlopen(urllib.request.Request(f"{address}/chat/completions", body, headers)) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def main():
    session = f"chat-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    with Wellkept(os.environ.get("WELLKEPT_URL", "sqlite:///chat.db")) as store:
        memory = store.agent("assistant")
        while True:
            try:
                said = input("you: ").strip()
            except EOFError:
                break
            if not said:
                continue
            prompt = memory.context(said, session=session, system_prompt=PROMPT, budget=4000)
            reply = ask_model(prompt.messages)
            print(f"assistant: {reply}")
            # Facts outlive the conversation. A question is no fact.
            known = {fact.id for fact in memory.profile().facts}
            memory.log_turn(session, user=said, assistant=reply)
            for fact in memory.profile().facts:
                if fact.id not in known:
                    print(f"  (remembered: {fact.text})")


if __name__ == "__main__":
    main()
