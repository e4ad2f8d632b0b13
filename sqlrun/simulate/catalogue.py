"""The dishes, restaurants, menus and prices of the simulated platform, the same for every seed. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

MENU_SIZE = 12

# Name, category, usual price in cents.
_DISHES = (
    ("Margherita Pizza", "pizza", 950),
    ("Pepperoni Pizza", "pizza", 1150),
    ("Four Cheese Pizza", "pizza", 1200),
    ("Vegetable Calzone", "pizza", 1100),
    ("Classic Cheeseburger", "burgers", 1090),
    ("Double Bacon Burger", "burgers", 1390),
    ("Crispy Chicken Burger", "burgers", 1150),
    ("Halloumi Burger", "burgers", 1120),
    ("Spaghetti Carbonara", "pasta", 1250),
    ("Lasagne al Forno", "pasta", 1290),
    ("Penne all'Arrabbiata", "pasta", 1050),
    ("Mushroom Ravioli", "pasta", 1350),
    ("Salmon Nigiri Set", "sushi", 1590),
    ("California Roll", "sushi", 890),
    ("Spicy Tuna Roll", "sushi", 990),
    ("Avocado Maki", "sushi", 620),
    ("Chicken Tikka Masala", "curries", 1390),
    ("Lamb Rogan Josh", "curries", 1490),
    ("Palak Paneer", "curries", 1190),
    ("Thai Green Curry", "curries", 1290),
    ("Pad Thai with Prawns", "noodles", 1320),
    ("Beef Pho", "noodles", 1250),
    ("Tonkotsu Ramen", "noodles", 1380),
    ("Vegetable Chow Mein", "noodles", 990),
    ("Carnitas Tacos", "mexican", 1050),
    ("Bean and Cheese Burrito", "mexican", 980),
    ("Chicken Quesadilla", "mexican", 1020),
    ("Nachos with Guacamole", "mexican", 850),
    ("Caesar Salad", "salads", 920),
    ("Greek Salad", "salads", 890),
    ("Falafel Bowl", "salads", 1080),
    ("Poke Bowl with Salmon", "salads", 1420),
    ("Garlic Bread", "sides", 450),
    ("French Fries", "sides", 390),
    ("Vegetable Spring Rolls", "sides", 520),
    ("Butter Naan", "sides", 320),
    ("Tiramisu", "desserts", 590),
    ("Chocolate Brownie", "desserts", 520),
    ("Mango Lassi", "drinks", 420),
    ("Homemade Lemonade", "drinks", 380),
)

_CITIES = (
    ("Lisbon", "EUR", "Europe/Lisbon"),
    ("Berlin", "EUR", "Europe/Berlin"),
    ("London", "GBP", "Europe/London"),
    ("Paris", "EUR", "Europe/Paris"),
    ("Zurich", "CHF", "Europe/Zurich"),
    ("Madrid", "EUR", "Europe/Madrid"),
    ("Manchester", "GBP", "Europe/London"),
    ("Vienna", "EUR", "Europe/Vienna"),
    ("Dublin", "EUR", "Europe/Dublin"),
    ("Geneva", "CHF", "Europe/Zurich"),
)
_FIRST_WORDS = ("Golden", "Little", "Blue", "Old Town", "Green")
_SECOND_WORDS = ("Lantern", "Olive", "Harbour", "Spoon", "Oven", "Garden", "Pepper", "Table", "Fig", "Ember")


@dataclass(frozen=True, slots=True)
class Dish:
    """One dish of the platform's catalogue; restaurants vary the price, in cents."""

    dish_id: str
    dish_name: str
    category: str
    usual_price: int


@dataclass(frozen=True, slots=True)
class Restaurant:
    """One restaurant of the platform; its prices are in its currency, its times in its time zone."""

    restaurant_id: str
    restaurant_name: str
    city: str
    currency: str
    time_zone: str


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A dish in a restaurant's menu; the price is in cents."""

    dish_id: str
    price: int


def dish_catalogue() -> tuple[Dish, ...]:
    """Return the 40 dishes in order of their ids, d001 to d040."""
    return tuple(Dish(f"d{number:03d}", *dish) for number, dish in enumerate(_DISHES, start=1))


def restaurant_names() -> tuple[Restaurant, ...]:
    """Return the 50 restaurants with a name, r0001 to r0050, by falling number of orders."""
    return tuple(
        Restaurant(
            restaurant_id(index),
            # The second word shifts after each round of first words, so that all names differ.
            f"{_FIRST_WORDS[index % 5]} {_SECOND_WORDS[(index // 5 + index * 2) % 10]}",
            *_CITIES[(index * 7 + index // len(_CITIES)) % len(_CITIES)],
        )
        for index in range(len(_FIRST_WORDS) * len(_SECOND_WORDS))
    )


def restaurant_id(index: int) -> str:
    """Return the id of a restaurant by its rank in popularity, counted from 0."""
    return f"r{index + 1:04d}"


def menu(restaurant: str) -> tuple[MenuEntry, ...]:
    """Return a restaurant's menu, its most popular dish first.

    It depends on the restaurant's id only: if it changed with the seed, it would not match the seed tables.
    """
    chosen = sorted(dish_catalogue(), key=lambda dish: _hash(f"place {restaurant} {dish.dish_id}"))[:MENU_SIZE]
    return tuple(MenuEntry(dish.dish_id, _price(restaurant, dish)) for dish in chosen)


def _price(restaurant: str, dish: Dish) -> int:
    """Return the usual price changed by -10 % to +15 %, as a multiple of ten cents."""
    percent = 90 + _hash(f"price {restaurant} {dish.dish_id}") % 26
    return dish.usual_price * percent // 1000 * 10


def _hash(text: str) -> int:
    # Python's own hash() of text differs between runs.
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
