"""How do models call tools that were not trained to, or whose servers do not hand calls on?"""
