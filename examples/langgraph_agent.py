"""An agent of LangChain, on LangGraph, that remembers its users across threads.

Without OPENAI_MODEL, a scripted model answers, so that you can try it without a key. With it, install langchain-openai.
"""

import os

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from wellkept import Wellkept
from wellkept.integrations.langchain import WellkeptMiddleware
from wellkept.integrations.langgraph import WellkeptStore


def choose_model():
    if model := os.environ.get("OPENAI_MODEL"):
        return f"openai:{model}"
    return GenericFakeChatModel(
        messages=iter([AIMessage("I have noted it."), AIMessage("A vegetarian place in Oslo.")])
    )


def main():
    with Wellkept(os.environ.get("WELLKEPT_URL", "sqlite:///agent.db")) as wellkept:
        memory = wellkept.agent("guide")
        agent = create_agent(
            choose_model(),
            system_prompt="You recommend restaurants.",
            middleware=[WellkeptMiddleware(memory, remember=True)],
            store=WellkeptStore(memory),
        )
        for thread, said in (
            ("monday", "I live in Oslo and I only eat vegetarian food"),
            ("tuesday", "Which vegetarian food can I eat?"),
        ):
            configuration = {"configurable": {"thread_id": thread, "user_id": "anna"}}
            answer = agent.invoke({"messages": [{"role": "user", "content": said}]}, configuration)
            print(f"{thread}: {answer['messages'][-1].text}")

        (shown,) = memory.prompts.list(session_id="tuesday", limit=1)
        recalled = [
            item.id for block in shown.blocks if block.name == "memories" for item in block.items if not item.left_out
        ]
        print("recalled on Tuesday:", [memory.get(id).text for id in recalled])


if __name__ == "__main__":
    main()
