"""What engines' scores are worth, and policies made of them."""
